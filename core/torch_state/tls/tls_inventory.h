// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {

// How to treat a thread-local variable of LibTorch when ranks share a thread.
enum class TlsScope {
  per_fiber,           // state of a thread: every fiber has its own
  per_fiber_optional,  // the same, for a feature that a build may leave out
  per_rank,            // set by TorchRankState, the same for all fibers of a rank
  shared,              // not exchanged: a cache, or scratch memory that is not in use at a suspension
};

struct TlsEntry {
  std::string_view symbol;  // mangled
  TlsScope scope;
  std::string_view reason;
};

// All variables of one third-party library. They are recognised by the first name in the mangled symbol or, for symbols
// of C, by their prefix. All of them are shared.
struct TlsFamily {
  std::string_view name;
  std::string_view reason;
};

// The known variables of one or several libraries.
struct TlsInventory {
  std::span<const TlsEntry> entries;
  std::span<const TlsFamily> families;
};

TlsInventory torch_inventory();       // libc10.so and libtorch_cpu.so
TlsInventory c10_cuda_inventory();    // libc10_cuda.so
TlsInventory torch_cuda_inventory();  // libtorch_cuda.so

// The RecordFunction thread id. c10d uses it as the key of group registries, and autograd marks its nodes with it.
inline constexpr std::string_view kThreadIdSymbol = "_ZN2at12_GLOBAL__N_118current_thread_id_E";

struct ClassifiedTls {
  std::vector<TlsScope> scopes;                 // one per symbol
  std::vector<std::string> unknown;             // symbols that neither an entry nor a family covers
  std::vector<const TlsEntry*> used_entries;    // with repetitions
  std::vector<const TlsFamily*> used_families;  // with repetitions
};

// Classifies the variables of one library. The guard of a function-local variable gets that variable's scope. The guard
// of a source file (`__tls_guard`) gets the scope of the variable after it, so `symbols` must be sorted by offset.
ClassifiedTls classify(std::span<const TlsSymbol> symbols, const TlsInventory& inventory);

}  // namespace rehearse::torch_state
