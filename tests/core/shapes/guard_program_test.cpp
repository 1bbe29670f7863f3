// SPDX-License-Identifier: BSD-3-Clause
// The guard program that each call runs gives the same answer as the conditions, and describes the first condition that
// fails.
#include <rehearse_internal/shapes/guard_program.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

using testing::HasSubstr;
using Values = std::vector<std::int64_t>;

TEST(GuardProgram, WithoutSymbolsHoldsAlways) {
  const GuardProgram program(*ShapeEnv::make());
  EXPECT_EQ(program.sources(), 0u);
  EXPECT_TRUE(program.holds(Values{}));
  EXPECT_THROW(program.holds(Values{1}), ShapeError);
  EXPECT_TRUE(GuardProgram().holds(Values{}));
}

TEST(GuardProgram, SizesOfOneSymbolAreEqualAndAtLeastTwo) {
  const auto env = ShapeEnv::make();
  env->add_backed(8, "x.size(0)");
  env->add_backed(8, "y.size(1)");
  env->add_backed_int(-3, "n");
  const GuardProgram program(*env);
  EXPECT_EQ(program.sources(), 3u);
  EXPECT_TRUE(program.holds(Values{2, 2, -100}));
  const Values differ = {4, 5, 0};
  const auto failure = program.describe(program.first_failure(differ).value(), differ);
  EXPECT_EQ(failure.expected, "x.size(0) == y.size(1)");
  EXPECT_EQ(failure.found, "x.size(0) is 4, y.size(1) is 5");
  EXPECT_EQ(failure.reason, "both were 8 when captured");
  const Values one = {1, 1, 0};
  EXPECT_EQ(program.describe(program.first_failure(one).value(), one).expected, "x.size(0) >= 2");
}

TEST(GuardProgram, NamesTheFirstGuardThatFails) {
  const auto env = ShapeEnv::make();
  const c10::SymInt a = env->add_backed(8, "x.size(0)");
  const c10::SymInt b = env->add_backed(6, "x.size(1)");
  static_cast<void>(a > 4);
  static_cast<void>(a * b % 5 == 3);
  static_cast<void>(b.guard_int("TensorBase.h", 7));
  const GuardProgram program(*env);
  EXPECT_EQ(program.size(), 5u);
  EXPECT_TRUE(program.holds(Values{8, 6}));
  EXPECT_TRUE(program.holds(Values{13, 6}));
  const auto failure = [&program](const Values& values) {
    return program.describe(program.first_failure(values).value(), values);
  };
  EXPECT_EQ(failure({3, 6}).expected, "x.size(0) >= 5");
  EXPECT_EQ(failure({3, 6}).found, "x.size(0) is 3");
  EXPECT_THAT(failure({3, 6}).reason, HasSubstr("SymInt.h:"));
  EXPECT_EQ(failure({9, 6}).expected, "Mod(x.size(0)*x.size(1), 5) == 3");
  EXPECT_EQ(failure({9, 6}).found, "x.size(0) is 9, x.size(1) is 6");
  EXPECT_EQ(failure({8, 11}).expected, "x.size(1) == 6");
  EXPECT_TRUE(failure({8, 11}).specialises);
  EXPECT_FALSE(failure({9, 6}).specialises);
}

TEST(GuardProgram, WhatCannotBeComputedFails) {
  const auto env = ShapeEnv::make();
  const c10::SymInt n = env->add_backed_int(3, "n");
  const c10::SymInt a = env->add_backed(8, "x.size(0)");
  static_cast<void>(a % n == 2);
  static_cast<void>(a * a * a > 100);
  const GuardProgram program(*env);
  EXPECT_TRUE(program.holds(Values{3, 8}));
  EXPECT_EQ(program.describe(program.first_failure(Values{0, 8}).value(), Values{0, 8}).expected,
            "Mod(x.size(0), n) == 2");
  EXPECT_FALSE(program.holds(Values{3, std::int64_t{1} << 40}));
}

// Returns whether the condition holds and all its parts can be computed, also the parts that do not decide it.
bool holds_and_computable(const Condition& condition, const Assignment& values) {
  if (condition.is_constant() || condition.is_comparison()) {
    try {
      return condition.evaluate(values_in(values)).value();
    } catch (const DivisionByZero&) {
      return false;
    }
  }
  const bool is_and = condition.kind() == Condition::Kind::And;
  bool holds = is_and;
  for (const Condition& part : condition.operands()) {
    const bool computable = holds_and_computable(part, values) || holds_and_computable(~part, values);
    if (!computable) return false;
    const bool part_holds = holds_and_computable(part, values);
    holds = is_and ? holds && part_holds : holds || part_holds;
  }
  return holds;
}

// Guards on random conditions, made for one assignment and checked at others.
TEST(GuardProgram, AgreesWithTheConditions) {
  EXPECT_TRUE(holds_for_any("guards", [] {
    const auto env = ShapeEnv::make();
    const Assignment captured = any_assignment(2, 30);
    const char* const names[] = {"s0", "s1", "s2"};
    for (const char* name : names) env->add_backed_int(captured.at(name), name);
    for (int i = 0; i < 4; ++i) {
      const AnyCondition any = any_condition(1);
      const std::vector<std::string> symbols = any.condition.symbols();
      const bool backed = std::find(symbols.begin(), symbols.end(), "u0") == symbols.end();
      if (backed && any.directly(captured)) RC_ASSERT(env->guard(any.condition, "a test") == any.directly(captured));
    }
    const GuardProgram program(*env);
    for (int i = 0; i < 20; ++i) {
      const Assignment values = i == 0 ? captured : any_assignment(-3, 30);
      bool expected = true;
      for (const Guard& guard : env->guards()) expected = expected && holds_and_computable(guard.condition, values);
      const Values sources = {values.at("s0"), values.at("s1"), values.at("s2")};
      RC_ASSERT(program.holds(sources) == expected);
    }
  }));
}

}  // namespace
}  // namespace rehearse::shapes
