// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tcp_store.h"

#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rehearse_internal/exec/this_rank.h>

#define REHEARSE_TCP_STORE(kind) \
  "_ZN4c10d8TCPStore" kind "ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_15TCPStoreOptionsE"

namespace rehearse::torch_state {

// The dynamic linker prefers an executable's definitions to LibTorch's, also for calls that LibTorch makes. In the ABI,
// a std::string passed by value is the address of an object that the caller owns.
void make_tcp_store(c10d::TCPStore* store, std::string* host,
                    const c10d::TCPStoreOptions& options) __asm__(REHEARSE_TCP_STORE("C1"))
    __attribute__((visibility("default"), used));
void make_tcp_store_base(c10d::TCPStore* store, std::string* host,
                         const c10d::TCPStoreOptions& options) __asm__(REHEARSE_TCP_STORE("C2"))
    __attribute__((visibility("default"), used));

namespace {

using Make = void (*)(c10d::TCPStore*, std::string*, const c10d::TCPStoreOptions&);

void refuse_in_rank() {
  if (!exec::this_rank::is_fiber()) return;
  throw std::runtime_error(
      "rank " + std::to_string(exec::this_rank::rank()) +
      " made a c10d::TCPStore: its server and clients wait in sockets, which would block all ranks, for they share one "
      "thread. Use the world's store, ctx.store(), or c10d::PrefixStore(\"name\", ctx.store()) for keys of its own");
}

}  // namespace

void make_tcp_store(c10d::TCPStore* store, std::string* host, const c10d::TCPStoreOptions& options) {
  refuse_in_rank();
  static const auto next = reinterpret_cast<Make>(dlsym(RTLD_NEXT, REHEARSE_TCP_STORE("C1")));
  next(store, host, options);
}

void make_tcp_store_base(c10d::TCPStore* store, std::string* host, const c10d::TCPStoreOptions& options) {
  refuse_in_rank();
  static const auto next = reinterpret_cast<Make>(dlsym(RTLD_NEXT, REHEARSE_TCP_STORE("C2")));
  next(store, host, options);
}

Interposed interposed_store() {
  return {"the constructor of c10d::TCPStore",
          "a rank that makes one would stop all ranks",
          {{REHEARSE_TCP_STORE("C1"), reinterpret_cast<void*>(&make_tcp_store)}}};
}

}  // namespace rehearse::torch_state
