// SPDX-License-Identifier: BSD-3-Clause
// The tests assume facts one after the other. Decisions, bounds and simplifications by these facts must be right for
// all values that fit the facts.
#include "shapes/expr/bounds/facts.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

Facts facts_of_a_capture() {
  Facts facts;
  for (const Expr& symbol : {s0, s1, Expr::symbol("s2"), u0}) {
    facts.set_range(symbol, {symbol == u0 ? 0 : 2, Range::kUnboundedAbove});
  }
  return facts;
}

TEST(Facts, AreRightForValuesThatFitThem) {
  EXPECT_TRUE(holds_for_any("facts", [] {
    Facts facts = facts_of_a_capture();
    const Assignment values = any_assignment(2, 9);
    for (int i = 0; i < 5; ++i) {
      const AnyCondition any = any_condition(*rc::gen::inRange(0, 2));
      const std::optional<bool> value = any.directly(values);
      if (!value) continue;
      const Condition holds = *value ? any.condition : ~any.condition;
      RC_ASSERT(facts.decide(holds) != false);
      facts.assume(holds);
      RC_ASSERT(facts.decide(holds) != false);
    }
    for (int i = 0; i < 5; ++i) {
      const AnyExpr expr = any_expr(2);
      if (const auto value = expr.directly(values)) {
        RC_ASSERT(facts.range(expr.expr).contains(*value));
        RC_ASSERT(facts.simplify(expr.expr).evaluate(values_in(values)) == value);
      }
      // If a divisor is known to be zero, decide() throws DivisionByZero. So the test asks only about conditions that
      // it can compute.
      const AnyCondition condition = any_condition(1);
      if (const std::optional<bool> expected = condition.directly(values)) {
        RC_ASSERT(facts.decide(condition.condition).value_or(*expected) == *expected);
      }
    }
  }));
}

TEST(Facts, DecideWhatFollowsFromThem) {
  Facts facts = facts_of_a_capture();
  facts.assume(Condition::le(s0 + s1, 10) & Condition::ne(u0, 0));
  EXPECT_EQ(facts.decide(Condition::le(s0 + s1, 12)), true);
  EXPECT_EQ(facts.decide(Condition::gt(s0 + s1, 10)), false);
  EXPECT_EQ(facts.decide(Condition::lt(-s0 - s1, -10)), false);
  EXPECT_EQ(facts.decide(Condition::ge(u0, 1)), true);
  EXPECT_EQ(facts.decide(Condition::le(s0, 4)), std::nullopt);
  facts.assume(Condition::eq(s1, s0));
  EXPECT_EQ(facts.simplify(s1 + 1), s0 + 1);
  EXPECT_EQ(facts.decide(Condition::le(2 * s0, 10)), true) << "what was known of s0 + s1 is known of 2*s0";
  facts.assume(Condition::eq(u0, s0 * s1));
  EXPECT_EQ(facts.simplify(u0), s0 * s0);
  facts.assume(Condition::eq(s0, 3));
  EXPECT_EQ(facts.simplify(u0 + s1), 12);
}

TEST(Facts, AboutAProduct_DecideQuestionsAboutIt) {
  Facts facts = facts_of_a_capture();
  facts.assume(Condition::le(s0 * s1, 10));
  EXPECT_EQ(facts.decide(Condition::le(s0 * s1, 10)), true);
  EXPECT_EQ(facts.decide(Condition::gt(s0 * s1, 10)), false);
  EXPECT_EQ(facts.decide(Condition::le(s0 * s1, 9)), std::nullopt);
  EXPECT_EQ(facts.decide(Condition::ge(-2 * s0 * s1, -20)), true);
  EXPECT_EQ(facts.decide(Condition::le(s0 * s1 - u0, 10)), true) << "u0 is not negative";
  facts.assume(Condition::le(s0 * s0, 16));
  EXPECT_EQ(facts.range(3 * s0 * s0), (Range{12, 48}));
}

}  // namespace
}  // namespace rehearse::shapes
