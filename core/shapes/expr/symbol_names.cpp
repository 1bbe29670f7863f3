// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/symbol_names.h"

namespace rehearse::shapes {
namespace {

std::string_view letters_of(std::string_view name) noexcept {
  return name.substr(0, std::min(name.find_first_of("0123456789"), name.size()));
}

}  // namespace

bool is_integer_symbol(std::string_view name) noexcept {
  const std::string_view letters = letters_of(name);
  const std::string_view digits = name.substr(letters.size());
  const bool lower = std::ranges::all_of(letters, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool numbered = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return lower && numbered && !letters.empty() && !digits.empty() && letters != "zf" && letters != "zuf";
}

bool is_unbacked_name(std::string_view symbol) noexcept {
  const std::string_view letters = letters_of(symbol);
  return letters == "u" || letters == "zuf";
}

}  // namespace rehearse::shapes
