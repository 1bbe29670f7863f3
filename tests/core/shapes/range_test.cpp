// SPDX-License-Identifier: BSD-3-Clause
// Bounds of expressions, and the conditions that they decide.
#include <rehearse_internal/shapes/range.h>

#include <gtest/gtest.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

constexpr std::int64_t kBelow = Range::kUnboundedBelow;
constexpr std::int64_t kAbove = Range::kUnboundedAbove;

Range known(const Expr& expr) {
  if (!expr.is_symbol()) return {};
  return {expr == u0 ? 0 : 2, expr == u0 ? 10 : kAbove};
}

Range range(const Expr& expr) { return range_of(expr, known); }

TEST(RangeOf, FollowsTheSymbols) {
  EXPECT_EQ(range(5), (Range{5, 5}));
  EXPECT_EQ(range(s0), (Range{2, kAbove}));
  EXPECT_EQ(range(u0), (Range{0, 10}));
  EXPECT_EQ(range(3 * u0 + 1), (Range{1, 31}));
  EXPECT_EQ(range(-s0), (Range{kBelow, -2}));
  EXPECT_EQ(range(s0 * s1), (Range{4, kAbove}));
  EXPECT_EQ(range(s0 * s1 - s0), (Range{2, kAbove}));
  EXPECT_EQ(range((u0 - 5) * (u0 - 5)).lower, -75);
  EXPECT_EQ(range(floordiv(s0, 2)), (Range{1, kAbove}));
  EXPECT_EQ(range(mod(s0, 4)), (Range{0, 3}));
  EXPECT_EQ(range(max(u0, 1)), (Range{1, 10}));
  EXPECT_EQ(range(min(s0, u0)), (Range{0, 10}));
  EXPECT_EQ(range(s0 - floordiv(s0, 2)), (Range{1, kAbove}));
  EXPECT_EQ(range(s0 - 2 * floordiv(s0, 2)), (Range{0, 1}));
  EXPECT_EQ(range(floordiv(-3, s0)), (Range{-2, -1}));
  EXPECT_EQ(range(floordiv(s0, u0)), Range());
}

TEST(Decide, TellsWhatHoldsForAllValues) {
  const auto decided = [](const Condition& condition) { return decide(condition, known); };
  EXPECT_EQ(decided(Condition::ne(s0, 1)), true);
  EXPECT_EQ(decided(Condition::eq(s0, 0)), false);
  EXPECT_EQ(decided(Condition::eq(s0, 2)), std::nullopt);
  EXPECT_EQ(decided(Condition::ne(s0 * s1, 3)), true);
  EXPECT_EQ(decided(Condition::ge(u0, 0)), true);
  EXPECT_EQ(decided(Condition::gt(u0, 10)), false);
  EXPECT_EQ(decided(Condition::ge(s0, floordiv(s0, 3))), true);
  EXPECT_EQ(decided(Condition::eq(s0, 1) | Condition::ge(s1, 2)), true);
  EXPECT_EQ(decided(Condition::eq(s0, 1) & Condition::ge(u0, 3)), false);
  EXPECT_EQ(decided(Condition::ge(s0, 2) & Condition::ge(u0, 3)), std::nullopt);
  EXPECT_EQ(decided(true), true);
}

}  // namespace
}  // namespace rehearse::shapes
