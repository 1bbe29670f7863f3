// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

// The calls of a store, by their c10d names. The texts of faults use these names.
namespace rehearse::sim {

// Says when faults that lose keys act: after the call if it sets values of keys (`writes`), before every other call
// (`reads`).
enum class StoreAccess { reads, writes };

struct StoreCallRow {
  std::string_view name;
  StoreAccess access;
};

inline constexpr std::array kStoreCalls{
    StoreCallRow{"set", StoreAccess::writes},       StoreCallRow{"compareSet", StoreAccess::writes},
    StoreCallRow{"get", StoreAccess::reads},        StoreCallRow{"add", StoreAccess::writes},
    StoreCallRow{"deleteKey", StoreAccess::reads},  StoreCallRow{"check", StoreAccess::reads},
    StoreCallRow{"getNumKeys", StoreAccess::reads}, StoreCallRow{"listKeys", StoreAccess::reads},
    StoreCallRow{"append", StoreAccess::writes},    StoreCallRow{"multiGet", StoreAccess::reads},
    StoreCallRow{"multiSet", StoreAccess::writes},  StoreCallRow{"queuePush", StoreAccess::reads},
    StoreCallRow{"queuePop", StoreAccess::reads},   StoreCallRow{"queueLen", StoreAccess::reads},
    StoreCallRow{"wait", StoreAccess::reads},
};

// Null: a store has no such call.
constexpr const StoreCallRow* find_store_call(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kStoreCalls, [&](const StoreCallRow& row) { return row.name == name; });
  return found == kStoreCalls.end() ? nullptr : found;
}

constexpr bool is_store_call(std::string_view name) { return find_store_call(name) != nullptr; }

// True if the name `pattern` matches `key`: either the whole key, or the part after one of its slashes. "epoch" matches
// "world/epoch". A "*" at the end matches anything.
inline bool is_key(std::string_view key, std::string_view pattern) {
  const bool open = pattern.ends_with('*');
  if (open) pattern.remove_suffix(1);
  for (;;) {
    if (open ? key.starts_with(pattern) : key == pattern) return true;
    const auto slash = key.find('/');
    if (slash == std::string_view::npos) return false;
    key.remove_prefix(slash + 1);
  }
}

}  // namespace rehearse::sim
