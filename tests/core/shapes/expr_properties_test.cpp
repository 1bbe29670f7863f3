// SPDX-License-Identifier: BSD-3-Clause
// Properties of random expressions and conditions. A canonical form has the value that AnyExpr::directly() computes. A
// text parses back to the same object. A range contains every value. An answer of decide() holds for all values.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>
#include <rehearse_internal/shapes/range.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

// The ranges in a capture: sizes of inputs are at least 2, and sizes that come from data at least 0.
Range range_of_symbol(const Expr& expr) {
  if (!expr.is_symbol()) return {};
  return {expr.symbol_name() == "u0" ? 0 : 2, Range::kUnboundedAbove};
}

void check(const char* what, const std::function<void()>& property) { EXPECT_TRUE(holds_for_any(what, property)); }

TEST(ExprProperties, CanonicalFormHasTheValueOfItsSteps) {
  check("evaluate", [] {
    const AnyExpr any = any_expr(3);
    for (int i = 0; i < 20; ++i) {
      const Assignment values = any_assignment(-9, 12);
      const auto expected = any.directly(values);
      if (expected) RC_ASSERT(any.expr.evaluate(values_in(values)) == expected);
    }
  });
}

TEST(ExprProperties, SubstitutedNumbersGiveTheValue) {
  check("substitute", [] {
    const AnyExpr any = any_expr(3);
    const Assignment values = any_assignment(-9, 12);
    const auto expected = any.directly(values);
    RC_PRE(expected.has_value());
    const Expr number = any.expr.substitute([&](const std::string& name) { return Expr(values.at(name)); });
    RC_ASSERT(number == Expr(*expected));
  });
}

TEST(ExprProperties, TextParsesBack) {
  check("parse", [] {
    const AnyExpr any = any_expr(3);
    RC_LOG() << any.expr.text();
    const std::optional<Expr> parsed = parse_expr(any.expr.text());
    RC_ASSERT(parsed.has_value());
    RC_ASSERT(*parsed == any.expr);
    const AnyCondition condition = any_condition(2);
    RC_LOG() << condition.condition.text();
    RC_ASSERT(parse_condition(condition.condition.text()) == condition.condition);
  });
}

TEST(ExprProperties, RangesHoldEveryValue) {
  check("range", [] {
    const AnyExpr any = any_expr(3);
    RC_LOG() << any.expr.text();
    const Range range = range_of(any.expr, range_of_symbol);
    for (int i = 0; i < 20; ++i) {
      const auto value = any.directly(any_assignment(2, 12));
      if (value) RC_ASSERT(range.contains(*value));
    }
  });
}

TEST(ExprProperties, WhatIsDecidedHoldsForEveryValue) {
  check("decide", [] {
    const AnyCondition any = any_condition(1);
    RC_LOG() << any.condition.text();
    const std::optional<bool> decided = decide(any.condition, range_of_symbol);
    for (int i = 0; i < 20; ++i) {
      const Assignment values = any_assignment(2, 12);
      const auto expected = any.directly(values);
      if (!expected) continue;
      RC_ASSERT(any.condition.evaluate(values_in(values)) == expected);
      RC_ASSERT((~any.condition).evaluate(values_in(values)) == !*expected);
      if (decided) RC_ASSERT(*decided == *expected);
    }
  });
}

TEST(ExprProperties, OrderIsTotalAndRingLawsHold) {
  check("laws", [] {
    const Expr a = any_expr(2).expr;
    const Expr b = any_expr(2).expr;
    const Expr c = any_expr(1).expr;
    RC_ASSERT(a + b == b + a);
    RC_ASSERT(a * (b + c) == a * b + a * c);
    RC_ASSERT((a - b) + b == a);
    RC_ASSERT((a <=> b) == (0 <=> (b <=> a)));
    if (a < b && b < c) RC_ASSERT(a < c);
  });
}

}  // namespace
}  // namespace rehearse::shapes
