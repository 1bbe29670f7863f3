// SPDX-License-Identifier: BSD-3-Clause
// Lowering turns an expression into few steps, and makes each step once. The result of the steps is the expression's
// value.
#include <rehearse_internal/shapes/lower.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse/shapes/errors.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

struct TextBuilder {
  using Value = std::string;

  Value number(std::int64_t number) { return std::to_string(number); }
  Value symbol(const std::string& name) { return name; }
  Value as_int(const Value& truth) { return "int(" + truth + ")"; }
  Value apply(Operation operation, const Value& left, const Value& right) {
    static const char* const kSigns[] = {"+", "-", "*", "//", "%", "min", "max", "==", "!=", "<=", "and", "or"};
    ++steps;
    return "(" + left + " " + kSigns[static_cast<int>(operation)] + " " + right + ")";
  }
  std::optional<Value> find(const Expr& expr) {
    const auto found = values.find(expr);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  void made(const Expr& expr, const Value& value) { values[expr] = value; }

  int steps = 0;
  std::map<Expr, Value> values;
};

struct ValueBuilder {
  using Value = std::int64_t;

  Value number(std::int64_t number) { return number; }
  Value symbol(const std::string& name) { return values.at(name); }
  Value as_int(Value truth) { return truth; }
  Value apply(Operation operation, Value left, Value right) {
    switch (operation) {
      case Operation::Add:
        return left + right;
      case Operation::Subtract:
        return left - right;
      case Operation::Multiply:
        return left * right;
      case Operation::FloorDivide:
        return floordiv(left, right).number();
      case Operation::Remainder:
        return mod(left, right).number();
      case Operation::Minimum:
        return std::min(left, right);
      case Operation::Maximum:
        return std::max(left, right);
      case Operation::Equal:
        return left == right;
      case Operation::NotEqual:
        return left != right;
      case Operation::AtMost:
        return left <= right;
      case Operation::And:
        return left & right;
      case Operation::Or:
        return left | right;
    }
    return 0;
  }
  std::optional<Value> find(const Expr&) { return std::nullopt; }
  void made(const Expr&, Value) {}

  Assignment values;
};

TEST(Lowering, HasOneStepForEachOperation) {
  TextBuilder builder;
  Lowering lower(builder);
  EXPECT_EQ(lower(Expr(7)), "7");
  EXPECT_EQ(lower(s0), "s0");
  EXPECT_EQ(builder.steps, 0);
  EXPECT_EQ(lower(2 * s0 + 1), "((s0 * 2) + 1)");
  EXPECT_EQ(lower(5 - s0), "(5 - s0)");
  EXPECT_EQ(lower(-s0), "(s0 * -1)");
  EXPECT_EQ(lower(s0 * s0 * s1), "((s0 * s0) * s1)");
  EXPECT_EQ(lower(floordiv(s0 + s1, 2)), "((s0 + s1) // 2)");
  EXPECT_EQ(lower(max(s0, 1)), "(1 max s0)");
  EXPECT_EQ(lower(where(Condition::ge(s0, 3), s1, 0)), "(s1 * int((3 <= s0)))");
  EXPECT_EQ(lower(Condition::lt(s0, s1) & Condition::ne(s0, 4)), "((s0 != 4) and ((s0 + 1) <= s1))");
}

TEST(Lowering, UsesWhatWasMadeBefore) {
  TextBuilder builder;
  Lowering lower(builder);
  lower(floordiv(s0, 2) * s1);
  EXPECT_EQ(builder.steps, 2);
  lower(floordiv(s0, 2));
  EXPECT_EQ(builder.steps, 2);
  lower(floordiv(s0, 2) + 1);
  EXPECT_EQ(builder.steps, 3);
  lower(floordiv(s0, 2) + 1);
  EXPECT_EQ(builder.steps, 3);
}

TEST(Lowering, HasTheValueOfTheExpression) {
  EXPECT_TRUE(holds_for_any("lower", [] {
    const AnyExpr expr = any_expr(3);
    const AnyCondition condition = any_condition(1);
    for (int i = 0; i < 10; ++i) {
      ValueBuilder builder{any_assignment(-9, 12)};
      Lowering lower(builder);
      if (const auto expected = expr.directly(builder.values)) RC_ASSERT(lower(expr.expr) == *expected);
      if (const auto expected = condition.directly(builder.values)) RC_ASSERT(lower(condition.condition) == *expected);
    }
  }));
}

TEST(AtomOf, IsOfSymbolsAndFunctions) {
  EXPECT_EQ(atom_of(mod(s0, 3)).kind, AtomKind::Mod);
  EXPECT_EQ(atom_of(mod(s0, 3)).operands, (std::vector<Expr>{s0, 3}));
  EXPECT_THROW(atom_of(s0 + 1), ShapeError);
  EXPECT_THROW(atom_of(3), ShapeError);
}

}  // namespace
}  // namespace rehearse::shapes
