// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tls/tls_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

#include "torch_state/tls/tls_inventory.h"

namespace rehearse::torch_state {
namespace {

// Libraries that one inventory describes.
struct Libraries {
  std::span<const char* const> names;
  TlsInventory (*inventory)(int minor);
};

constexpr const char* kTorch[] = {"libc10.so", "libtorch_cpu.so"};
constexpr const char* kC10Cuda[] = {"libc10_cuda.so"};
constexpr const char* kTorchCuda[] = {"libtorch_cuda.so"};

// Libraries of programs with devices. Simulations do not load them.
constexpr Libraries kOptional[] = {{kC10Cuda, c10_cuda_inventory}, {kTorchCuda, torch_cuda_inventory}};

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool takes_untested() {
  const char* const wanted = std::getenv("REHEARSE_UNTESTED_LIBTORCH");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

void refuse(const TlsModule& module, const std::string& how) {
  refuse_version(module.path, module.path + " (build id " + module.build_id + ") is not the LibTorch " +
                                  std::string(libtorch::kVersion) + " that this Rehearse knows: " + how);
}

bool is_per_fiber(TlsScope scope) { return scope == TlsScope::per_fiber || scope == TlsScope::per_fiber_optional; }

// Neighbouring per-fiber variables form one range. A range ends at a whole word, because copying whole words is faster
// than copying exact ends, and the gap between two variables is padding. If a shared variable begins earlier, the range
// ends there.
void add_ranges(TlsLayout& layout, const TlsModule& module, std::size_t index, const ClassifiedTls& classified) {
  constexpr std::size_t kWord = 16;
  bool open = false;
  for (std::size_t k = 0; k < module.symbols.size(); ++k) {
    const TlsSymbol& symbol = module.symbols[k];
    TlsRange* last = layout.ranges.empty() ? nullptr : &layout.ranges.back();
    const bool per_fiber = is_per_fiber(classified.scopes[k]);
    if (open && !per_fiber) last->bytes = std::min(last->bytes, symbol.offset - last->offset);
    if (!open && per_fiber) last = &layout.ranges.emplace_back(TlsRange{index, symbol.offset, 0});
    open = per_fiber;
    if (!open) continue;
    const std::size_t end = std::min((symbol.offset + symbol.bytes + kWord - 1) / kWord * kWord, module.block_bytes);
    last->bytes = end - last->offset;
  }
}

// A file whose local symbols were stripped has no unknown symbols, but lacks the known ones.
void check_complete(const TlsModule& last, const TlsInventory& inventory, const std::vector<const TlsEntry*>& used) {
  std::vector<std::string> missing;
  for (const TlsEntry& entry : inventory.entries) {
    const bool found = std::find(used.begin(), used.end(), &entry) != used.end();
    const bool needed = entry.scope == TlsScope::per_fiber || entry.scope == TlsScope::per_rank;
    if (needed && !found) missing.emplace_back(entry.symbol);
  }
  if (!missing.empty()) refuse(last, "it lacks the thread-local variables " + join(missing));
}

// A new thread's value is right for each fiber, whatever the variable is.
void take_unknown(const TlsModule& module, ClassifiedTls& classified) {
  if (classified.unknown.empty()) return;
  refuse(module, "its thread-local variables " + join(classified.unknown) + " have no known owner");
  const auto& unknown = classified.unknown;
  for (std::size_t k = 0; k < module.symbols.size(); ++k) {
    const bool is_unknown = std::find(unknown.begin(), unknown.end(), module.symbols[k].name) != unknown.end();
    if (is_unknown) classified.scopes[k] = TlsScope::per_fiber;
  }
}

void add_module(TlsLayout& layout, TlsModule module, const TlsInventory& inventory,
                std::vector<const TlsEntry*>& used) {
  ClassifiedTls classified = classify(module.symbols, inventory);
  take_unknown(module, classified);
  used.insert(used.end(), classified.used_entries.begin(), classified.used_entries.end());
  const std::size_t index = layout.modules.size();
  add_ranges(layout, module, index, classified);
  for (const TlsSymbol& symbol : module.symbols) {
    if (symbol.name == kThreadIdSymbol) layout.thread_id = {index, symbol.offset, symbol.bytes};
  }
  layout.modules.push_back(std::move(module));
}

void add_libraries(TlsLayout& layout, const Libraries& libraries) {
  const TlsInventory inventory = libraries.inventory(libtorch::kMinor);
  std::vector<const TlsEntry*> used;
  for (const char* library : libraries.names) add_module(layout, read_tls_module(library), inventory, used);
  check_complete(layout.modules.back(), inventory, used);
}

// LibTorch's headers have thread-local variables of inline functions. If the executable has a copy of such a function,
// LibTorch's libraries use the executable's variable. The program's own variables lie between them, so ranges are
// exact.
void add_executable(TlsLayout& layout) {
  TlsModule module = read_tls_of_executable();
  std::erase_if(module.symbols,
                [](const TlsSymbol& symbol) { return !symbol.is_inline || !is_of_libtorch(symbol.name); });
  if (module.symbols.empty()) return;
  const TlsInventory inventory = executable_inventory();
  ClassifiedTls classified = classify(module.symbols, inventory);
  take_unknown(module, classified);
  std::size_t end = module.block_bytes;  // of the last range in the executable
  for (std::size_t k = 0; k < module.symbols.size(); ++k) {
    const TlsSymbol& symbol = module.symbols[k];
    if (!is_per_fiber(classified.scopes[k])) continue;
    if (symbol.offset != end) layout.ranges.push_back({layout.modules.size(), symbol.offset, 0});
    layout.ranges.back().bytes += symbol.bytes;
    end = symbol.offset + symbol.bytes;
  }
  layout.modules.push_back(std::move(module));
}

TlsLayout compute(std::span<const Libraries* const> optional) {
  TlsLayout layout;
  add_libraries(layout, {kTorch, torch_inventory});
  if (layout.thread_id.bytes != sizeof(std::uint64_t))
    refuse(layout.modules.back(), "its RecordFunction thread id is not a 64-bit number");
  for (const Libraries* libraries : optional) add_libraries(layout, *libraries);
  add_executable(layout);
  return layout;
}

}  // namespace

void refuse_version(const std::string& library, const std::string& what) {
  if (takes_untested()) {
    std::fprintf(stderr, "rehearse: %s. REHEARSE_UNTESTED_LIBTORCH=1: trying it\n", what.c_str());
    return;
  }
  throw TorchStateError(TorchStateError::Reason::version_differs, library,
                        what + ". Use the official package (pip install torch==" + std::string(libtorch::kVersion) +
                            "), or build Rehearse with the LibTorch that you have. REHEARSE_UNTESTED_LIBTORCH=1 tries "
                            "this one");
}

const TlsLayout& tls_layout() {
  static std::mutex mutex;
  static std::map<std::vector<const Libraries*>, TlsLayout> layouts;
  std::vector<const Libraries*> optional;
  for (const Libraries& libraries : kOptional) {
    if (is_loaded(libraries.names.front())) optional.push_back(&libraries);
  }
  const std::lock_guard lock(mutex);
  const auto found = layouts.find(optional);
  return found != layouts.end() ? found->second : layouts.emplace(optional, compute(optional)).first->second;
}

}  // namespace rehearse::torch_state
