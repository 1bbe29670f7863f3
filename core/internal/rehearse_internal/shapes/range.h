// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

// The integers from lower to upper, both within. The ends of 64 bits stand for "unbounded".
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

// What is known of an expression beyond its form: of a symbol, and of whole expressions where there are such facts.
// Range{} where nothing is.
using RangeOf = std::function<Range(const Expr& expression)>;

// A range that holds each value of the expression, given that of its symbols. Not always the least one.
Range range_of(const Expr& expression, const RangeOf& known);

// Whether the condition holds for all, or for no values of the symbols within their ranges; none when that is not seen.
std::optional<bool> decide(const Condition& condition, const RangeOf& known);

}  // namespace rehearse::shapes
