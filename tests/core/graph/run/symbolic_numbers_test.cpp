// SPDX-License-Identifier: BSD-3-Clause
// Python's functions on symbolic sizes give what they give for the sizes' numbers, or nothing.
#include "graph/run/python/symbolic_numbers.h"

#include <gtest/gtest.h>

#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::graph {
namespace {

class SymbolicNumbers : public testing::Test {
 protected:
  std::shared_ptr<shapes::ShapeEnv> env = shapes::ShapeEnv::make();
  c10::SymInt six = env->add_backed(6, "x.size(0)");
  c10::SymInt ten = env->add_backed(10, "y.size(0)");
};

TEST_F(SymbolicNumbers, PowersOfANaturalNumber) {
  EXPECT_EQ(call_symbolically("_operator.pow", {six, 0})->toSymInt(), 1);
  EXPECT_EQ(call_symbolically("_operator.pow", {six, 3})->toSymInt(), 216);
}

TEST_F(SymbolicNumbers, QuotientsRoundDown) {
  const auto equals = [](const std::optional<c10::IValue>& found, std::int64_t expected) {
    return found->toSymInt().sym_eq(expected).guard_bool(__FILE__, __LINE__);
  };
  EXPECT_TRUE(equals(call_symbolically("_operator.floordiv", {six - 9, 2}), -2));
  EXPECT_TRUE(equals(call_symbolically("_operator.mod", {six - 9, 4}), 1));
  EXPECT_TRUE(equals(call_symbolically("_operator.floordiv", {six, -4}), -2));
  EXPECT_TRUE(equals(call_symbolically("_operator.mod", {six, -4}), -2));
  EXPECT_TRUE(equals(call_symbolically("_operator.floordiv", {13, six}), 2));
  EXPECT_TRUE(equals(call_symbolically("_operator.mod", {13, six}), 1));
}

// A guard has decided the truth value, so its number is plain.
TEST_F(SymbolicNumbers, QuotientsOfADecidedTruthValue) {
  const c10::IValue truth = six.sym_gt(7);
  EXPECT_FALSE(truth.toSymBool().guard_bool(__FILE__, __LINE__));
  ASSERT_TRUE(truth.isSymBool());
  EXPECT_EQ(call_symbolically("_operator.floordiv", {truth, 2})->toSymInt(), 0);
  EXPECT_EQ(call_symbolically("_operator.mod", {truth, -2})->toSymInt(), 0);
}

// In Python, 6 ** -1 is a float.
TEST_F(SymbolicNumbers, APowerWithANegativeExponentHasNoForm) {
  EXPECT_FALSE(call_symbolically("_operator.pow", {six, -1}));
  EXPECT_FALSE(call_symbolically("_operator.pow", {2, -six}));
}

// In Python, 6 & 10 is 2, and 6 | 10 is 14.
TEST_F(SymbolicNumbers, BitsOfIntegersHaveNoForm) {
  for (const char* const function : {"_operator.and_", "_operator.or_"}) {
    EXPECT_FALSE(call_symbolically(function, {six, ten})) << function;
    EXPECT_FALSE(call_symbolically(function, {six.sym_gt(2), ten})) << function;
  }
}

TEST_F(SymbolicNumbers, TruthValuesAreCombined) {
  const c10::SymBool more = six.sym_gt(2), less = ten.sym_lt(10);
  EXPECT_FALSE(call_symbolically("_operator.and_", {more, less})->toSymBool().guard_bool(__FILE__, __LINE__));
  EXPECT_TRUE(call_symbolically("_operator.or_", {more, less})->toSymBool().guard_bool(__FILE__, __LINE__));
  EXPECT_TRUE(call_symbolically("_operator.and_", {more, true})->toSymBool().guard_bool(__FILE__, __LINE__));
}

TEST_F(SymbolicNumbers, NumbersWithoutSymbolsAreNotAnswered) {
  EXPECT_FALSE(call_symbolically("_operator.add", {2, 3}));
  EXPECT_FALSE(call_symbolically("_operator.add", {six, 0.5}));
}

}  // namespace
}  // namespace rehearse::graph
