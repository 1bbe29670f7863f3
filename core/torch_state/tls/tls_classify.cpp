// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tls/tls_inventory.h"

#include <algorithm>
#include <array>

namespace rehearse::torch_state {
namespace {

// The first name in a mangled symbol: "torch" for "_ZGVZNK5torch8autograd...". Empty for symbols of C.
std::string_view first_name(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return {};
  symbol.remove_prefix(2);
  if (symbol.starts_with("GV")) symbol.remove_prefix(2);
  while (!symbol.empty() && std::string_view("ZNK").find(symbol.front()) != std::string_view::npos)
    symbol.remove_prefix(1);
  std::size_t length = 0;
  while (!symbol.empty() && symbol.front() >= '0' && symbol.front() <= '9') {
    length = length * 10 + static_cast<std::size_t>(symbol.front() - '0');
    symbol.remove_prefix(1);
  }
  return symbol.substr(0, length);
}

const TlsFamily* find_family(std::span<const TlsFamily> families, std::string_view symbol) {
  const std::string_view name = first_name(symbol);
  for (const TlsFamily& family : families) {
    if (name.empty() ? symbol.starts_with(family.name) : name == family.name) return &family;
  }
  return nullptr;
}

const TlsEntry* find_entry(std::span<const TlsEntry> entries, std::string_view symbol) {
  for (const TlsEntry& entry : entries) {
    if (entry.symbol.starts_with('*') && symbol.ends_with(entry.symbol.substr(1))) return &entry;
    const bool is_guard = symbol.starts_with("_ZGV") && symbol.substr(4) == entry.symbol.substr(2);
    if (is_guard || symbol == entry.symbol) return &entry;
  }
  return nullptr;
}

}  // namespace

bool is_of_libtorch(std::string_view symbol) {
  constexpr std::array<std::string_view, 5> kNamespaces = {"at", "c10", "c10d", "caffe2", "torch"};
  return std::find(kNamespaces.begin(), kNamespaces.end(), first_name(symbol)) != kNamespaces.end();
}

ClassifiedTls classify(std::span<const TlsSymbol> symbols, const TlsInventory& inventory) {
  ClassifiedTls result;
  result.scopes.resize(symbols.size(), TlsScope::shared);
  // Goes backwards, because the guard of a source file takes the scope of the variable after it.
  for (std::size_t k = symbols.size(); k-- > 0;) {
    const std::string& name = symbols[k].name;
    if (name == "__tls_guard") {
      if (k + 1 < symbols.size()) result.scopes[k] = result.scopes[k + 1];
    } else if (const TlsEntry* entry = find_entry(inventory.entries, name)) {
      result.scopes[k] = entry->scope;
      result.used_entries.push_back(entry);
    } else if (const TlsFamily* family = find_family(inventory.families, name)) {
      result.used_families.push_back(family);
    } else {
      result.unknown.push_back(name);
    }
  }
  return result;
}

}  // namespace rehearse::torch_state
