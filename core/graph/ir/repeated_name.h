// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/graph/argument.h>

namespace rehearse::graph {

// The first name, alphabetically, that a dict contains more than once.
inline std::optional<std::string> repeated_name(const Dict& dict) {
  if (dict.size() < 2) return std::nullopt;
  std::vector<std::string_view> names;
  names.reserve(dict.size());
  for (const auto& [name, value] : dict) names.push_back(name);
  std::ranges::sort(names);
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return std::nullopt;
  return std::string(*twice);
}

}  // namespace rehearse::graph
