// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

// The integers from lower to upper, both included. The least and greatest 64-bit numbers mean "unbounded".
struct Range {
  static constexpr std::int64_t kUnboundedBelow = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kUnboundedAbove = std::numeric_limits<std::int64_t>::max();

  std::int64_t lower = kUnboundedBelow;
  std::int64_t upper = kUnboundedAbove;

  bool empty() const noexcept { return lower > upper; }
  bool contains(std::int64_t value) const noexcept { return lower <= value && value <= upper; }
  bool operator==(const Range&) const = default;
};

Range intersection(const Range& left, const Range& right) noexcept;

// Returns what is known about the range of a symbol or an expression, besides what range_of() computes from the
// expression's operands. Returns Range{} if nothing is known.
using RangeOf = std::function<Range(const Expr& expression)>;

// A range that contains all values of the expression, given the ranges of its symbols. Not always the smallest one.
Range range_of(const Expr& expression, const RangeOf& known);

// True if the condition holds for all values of the symbols within their ranges, false if it holds for none. Nothing if
// the ranges do not decide.
std::optional<bool> decide(const Condition& condition, const RangeOf& known);

}  // namespace rehearse::shapes
