// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {

// Whom a thread-local variable of LibTorch belongs to when ranks share a thread.
enum class TlsScope {
  per_fiber,           // what a thread owns: every fiber has its own
  per_fiber_optional,  // the same, of a feature that a build may leave out
  per_rank,            // set by TorchRankState, the same for all fibers of a rank
  shared,              // a cache, or scratch memory that no suspension interrupts: left alone
};

struct TlsEntry {
  std::string_view symbol;  // mangled
  TlsScope scope;
  std::string_view reason;
};

// Everything of one third-party library: its variables are found by the first name of the mangled symbol, or,
// for symbols of C, by their beginning. All of them are shared.
struct TlsFamily {
  std::string_view name;
  std::string_view reason;
};

// What is known of the variables of a library, or of several.
struct TlsInventory {
  std::span<const TlsEntry> entries;
  std::span<const TlsFamily> families;
};

TlsInventory torch_inventory();       // libc10.so and libtorch_cpu.so
TlsInventory c10_cuda_inventory();    // libc10_cuda.so
TlsInventory torch_cuda_inventory();  // libtorch_cuda.so

// The RecordFunction thread id, by which c10d keys group registries and autograd marks its nodes.
inline constexpr std::string_view kThreadIdSymbol = "_ZN2at12_GLOBAL__N_118current_thread_id_E";

struct ClassifiedTls {
  std::vector<TlsScope> scopes;                 // one for each of the symbols
  std::vector<std::string> unknown;             // symbols that neither an entry nor a family covers
  std::vector<const TlsEntry*> used_entries;    // with repetitions
  std::vector<const TlsFamily*> used_families;  // with repetitions
};

// Classifies the variables of one library (sorted by offset). Guard variables go with the variable they
// guard: by name for those of functions, and the guard of a source file (`__tls_guard`) with the variable
// that follows it.
ClassifiedTls classify(std::span<const TlsSymbol> symbols, const TlsInventory& inventory);

}  // namespace rehearse::torch_state
