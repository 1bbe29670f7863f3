// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {

// True for lower-case letters followed by digits, except names of floats (zf0, zuf0).
bool is_integer_symbol(std::string_view name) noexcept;

// The names of all symbols in an Expr or Condition, each once, in natural order.
template <class T>
std::vector<std::string> symbols_of(const T& value) {
  std::vector<std::string> names;
  for_each_atom(value, [&names](const Atom& atom) {
    if (atom.kind == AtomKind::Symbol) names.push_back(atom.name);
  });
  std::ranges::sort(names, [](const auto& left, const auto& right) { return compare_names(left, right) < 0; });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace rehearse::shapes
