// SPDX-License-Identifier: BSD-3-Clause
// The total order of expressions, by content only, never by address.
#include <algorithm>
#include <string_view>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

std::int64_t degree(const Monomial& monomial) {
  std::int64_t sum = 0;
  for (const Factor& factor : monomial) sum += factor.exponent;
  return sum;
}

std::strong_ordering compare(const Terms& left, const Terms& right) {
  const std::size_t both = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (const auto order = compare(left[i].monomial, right[i].monomial); order != 0) return order;
    if (left[i].coefficient != right[i].coefficient) return left[i].coefficient <=> right[i].coefficient;
  }
  return left.size() <=> right.size();
}

}  // namespace

std::strong_ordering compare_names(const std::string& left, const std::string& right) {
  const auto split = [](std::string_view name) {
    const std::size_t end = name.find_last_not_of("0123456789");
    const std::size_t digits = end == std::string_view::npos ? 0 : end + 1;
    return std::pair(name.substr(0, digits), name.substr(digits));
  };
  const auto [left_letters, left_digits] = split(left);
  const auto [right_letters, right_digits] = split(right);
  if (left_letters != right_letters) return left_letters <=> right_letters;
  if (left_digits.size() != right_digits.size()) return left_digits.size() <=> right_digits.size();
  return left_digits <=> right_digits;
}

std::strong_ordering compare(const Atom& left, const Atom& right) {
  if (&left == &right) return std::strong_ordering::equal;
  if (left.kind != right.kind) return left.kind <=> right.kind;
  if (left.kind == AtomKind::Symbol) return compare_names(left.name, right.name);
  if (left.kind == AtomKind::Where) return *left.condition <=> *right.condition;
  return std::lexicographical_compare_three_way(left.operands.begin(), left.operands.end(), right.operands.begin(),
                                                right.operands.end());
}

std::strong_ordering compare(const Monomial& left, const Monomial& right) {
  if (const auto order = degree(right) <=> degree(left); order != 0) return order;
  const std::size_t both = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (const auto order = compare(*left[i].atom, *right[i].atom); order != 0) return order;
    if (left[i].exponent != right[i].exponent) return right[i].exponent <=> left[i].exponent;
  }
  return std::strong_ordering::equal;  // equal degrees: neither has more factors
}

bool operator==(const Expr& left, const Expr& right) { return (left <=> right) == 0; }

std::strong_ordering operator<=>(const Expr& left, const Expr& right) {
  const Polynomial* of_left = left.polynomial_.get();
  const Polynomial* of_right = right.polynomial_.get();
  if (of_left == of_right) return left.number_ <=> right.number_;  // two numbers, or the same polynomial
  if (of_left == nullptr || of_right == nullptr) return (of_left != nullptr) <=> (of_right != nullptr);
  return compare(of_left->terms, of_right->terms);
}

}  // namespace rehearse::shapes
