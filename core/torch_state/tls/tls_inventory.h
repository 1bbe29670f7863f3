// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/libtorch/version.h>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {

// How to treat a thread-local variable of LibTorch when ranks share a thread.
enum class TlsScope {
  per_fiber,           // state of a thread: every fiber has its own
  per_fiber_optional,  // the same, for a feature that a build may leave out
  per_rank,            // set by TorchRankState, the same for all fibers of a rank
  shared,              // not exchanged: a cache, or scratch memory that is not in use at a suspension
};

constexpr libtorch::Minors since(int minor) { return {.since = minor}; }
constexpr libtorch::Minors until(int minor) { return {.until = minor}; }

struct TlsEntry {
  std::string_view symbol;  // mangled; "*name": each variable whose symbol ends with the name
  TlsScope scope;
  std::string_view reason;
  libtorch::Minors in = {};
};

// All variables of one third-party library. They are recognised by the first name in the mangled symbol or, for symbols
// of C, by their prefix. All of them are shared.
struct TlsFamily {
  std::string_view name;
  std::string_view reason;
  libtorch::Minors in = {};
};

// c10d's headers have one flag for each call that has a new name since 2.14 (rehearse_internal/libtorch/backend.h). As
// the functions are inline, a copy of each may lie in the executable, and LibTorch's libraries then use that copy.
inline constexpr TlsEntry kForwardingFlags = {
    "*19forwardingGuardFlag", TlsScope::per_fiber_optional, "true while c10d forwards a call to its old name", {14}};

// The known variables of one or several libraries.
struct TlsInventory {
  std::vector<TlsEntry> entries;
  std::vector<TlsFamily> families;
};

// The inventories of LibTorch 2.<minor>.
TlsInventory torch_inventory(int minor = libtorch::kMinor);       // libc10.so and libtorch_cpu.so
TlsInventory c10_cuda_inventory(int minor = libtorch::kMinor);    // libc10_cuda.so
TlsInventory torch_cuda_inventory(int minor = libtorch::kMinor);  // libtorch_cuda.so
TlsInventory executable_inventory(int minor = libtorch::kMinor);  // variables of LibTorch's headers in the executable

// The rows that hold for LibTorch 2.<minor>.
TlsInventory inventory_of(std::span<const TlsEntry> entries, std::span<const TlsFamily> families, int minor);

// The RecordFunction thread id. c10d uses it as the key of group registries, and autograd marks its nodes with it.
inline constexpr std::string_view kThreadIdSymbol = "_ZN2at12_GLOBAL__N_118current_thread_id_E";

// True for a name in one of LibTorch's namespaces.
bool is_of_libtorch(std::string_view symbol);

struct ClassifiedTls {
  std::vector<TlsScope> scopes;                 // one per symbol
  std::vector<std::string> unknown;             // symbols that neither an entry nor a family covers
  std::vector<const TlsEntry*> used_entries;    // with repetitions
  std::vector<const TlsFamily*> used_families;  // with repetitions
};

// Classifies the variables of one library or of the executable. The guard of a function-local variable gets that
// variable's scope. The guard of a source file (`__tls_guard`) gets the scope of the variable after it, so `symbols`
// must be sorted by offset.
ClassifiedTls classify(std::span<const TlsSymbol> symbols, const TlsInventory& inventory);

}  // namespace rehearse::torch_state
