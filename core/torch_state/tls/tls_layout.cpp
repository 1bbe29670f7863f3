// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tls/tls_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rehearse_internal/torch_state/torch_state.h>

#include "torch_state/tls/tls_inventory.h"

namespace rehearse::torch_state {
namespace {

// Libraries that one inventory describes.
struct Libraries {
  std::span<const char* const> names;
  TlsInventory (*inventory)();
};

constexpr const char* kTorch[] = {"libc10.so", "libtorch_cpu.so"};
constexpr const char* kC10Cuda[] = {"libc10_cuda.so"};
constexpr const char* kTorchCuda[] = {"libtorch_cuda.so"};

// Libraries of programs with devices. Simulations do not load them.
constexpr Libraries kOptional[] = {{kC10Cuda, c10_cuda_inventory}, {kTorchCuda, torch_cuda_inventory}};

[[noreturn]] void refuse(const TlsModule& module, const std::string& how) {
  throw TorchStateError(TorchStateError::Reason::version_differs, module.path,
                        module.path + " (build id " + module.build_id +
                            ") is not the LibTorch 2.11 that this Rehearse knows: " + how +
                            ". Use the official 2.11 package, or a Rehearse made for this version.");
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
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

void add_module(TlsLayout& layout, const char* library, const TlsInventory& inventory,
                std::vector<const TlsEntry*>& used) {
  TlsModule module = read_tls_module(library);
  const ClassifiedTls classified = classify(module.symbols, inventory);
  if (!classified.unknown.empty())
    refuse(module, "its thread-local variables " + join(classified.unknown) + " have no known owner");
  used.insert(used.end(), classified.used_entries.begin(), classified.used_entries.end());
  const std::size_t index = layout.modules.size();
  add_ranges(layout, module, index, classified);
  for (const TlsSymbol& symbol : module.symbols) {
    if (symbol.name == kThreadIdSymbol) layout.thread_id = {index, symbol.offset, symbol.bytes};
  }
  layout.modules.push_back(std::move(module));
}

void add_libraries(TlsLayout& layout, const Libraries& libraries) {
  const TlsInventory inventory = libraries.inventory();
  std::vector<const TlsEntry*> used;
  for (const char* library : libraries.names) add_module(layout, library, inventory, used);
  check_complete(layout.modules.back(), inventory, used);
}

TlsLayout compute(std::span<const Libraries* const> optional) {
  TlsLayout layout;
  add_libraries(layout, {kTorch, torch_inventory});
  if (layout.thread_id.bytes != sizeof(std::uint64_t))
    refuse(layout.modules.back(), "its RecordFunction thread id is not a 64-bit number");
  for (const Libraries* libraries : optional) add_libraries(layout, *libraries);
  return layout;
}

}  // namespace

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
