// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/address_alias.h>

#include <atomic>

#include "exec/call_site/canonical_address.h"

namespace rehearse::exec {
namespace {

// The list only grows, so readers need no lock.
struct Alias {
  std::uintptr_t begin, end, original;
  const Alias* next;
};

constinit std::atomic<const Alias*> g_aliases = nullptr;

}  // namespace

void add_address_alias(std::span<const std::byte> copy, const std::byte* original) {
  const auto begin = reinterpret_cast<std::uintptr_t>(copy.data());
  auto* const alias =
      new Alias{begin, begin + copy.size(), reinterpret_cast<std::uintptr_t>(original), g_aliases.load()};
  while (!g_aliases.compare_exchange_weak(alias->next, alias)) {
  }
}

std::uintptr_t canonical_address(std::uintptr_t address) noexcept {
  for (const auto* alias = g_aliases.load(std::memory_order_acquire); alias != nullptr; alias = alias->next) {
    if (address >= alias->begin && address < alias->end) return address - alias->begin + alias->original;
  }
  return address;
}

}  // namespace rehearse::exec
