// SPDX-License-Identifier: BSD-3-Clause
// Contract: first_divergence() gets each rank's log of writes to replicas, and finds the first write that differs.
#include <gtest/gtest.h>

#include "checks/watch/write_log.h"

namespace {

using namespace rehearse::checks;
using Log = std::map<int, std::vector<Write>>;

Write write(const std::string& op, std::uint64_t after, std::uint64_t operand = 0, const std::string& numbers = "") {
  return {"w", op, {}, after, {{"other", false, operand}}, numbers, 0};
}

std::string first(const Log& log) {
  std::vector<int> here;
  for (const auto& [rank, writes] : log) here.push_back(rank);
  return first_divergence(log, here).text;
}

TEST(FirstDivergence, NothingWasLookedAt) { EXPECT_EQ(first_divergence({}, {0, 1}).text, ""); }

// A weight decay on one rank: the operand is no longer the gradient there, which was equal.
TEST(FirstDivergence, AnOperandOfEqualGradients) {
  const auto step = [](std::uint64_t result, bool is_gradient) {
    return Write{"w", "add_", {}, result, {{"other", is_gradient, result}}, "", 7};
  };
  EXPECT_EQ(first({{0, {step(1, true)}}, {1, {step(1, true)}}, {2, {step(2, false)}}}),
            "first operation that differs: add_ on \"w\": rank 2 has a different result, because its argument "
            "\"other\" differed already");
}

TEST(FirstDivergence, AnotherArgument) {
  EXPECT_EQ(first({{0, {write("add_", 1, 5)}}, {1, {write("add_", 1, 5)}}, {2, {write("add_", 2, 6)}}}),
            "first operation that differs: add_ on \"w\": rank 2 has a different result, because its argument "
            "\"other\" differed already");
}

TEST(FirstDivergence, AnotherNumber) {
  EXPECT_EQ(first({{0, {write("add_", 1, 5, "alpha=-0.1")}}, {1, {write("add_", 2, 5, "alpha=-0.2")}}}),
            "first operation that differs: add_ on \"w\": rank 1 has a different result, because its arguments differ: "
            "alpha=-0.1 on rank 0, alpha=-0.2 on rank 1");
}

TEST(FirstDivergence, AGradient) {
  const auto with_gradient = [](std::uint64_t hash) {
    return Write{"w", "add_", {}, hash, {{"other", true, hash}}, "", hash};
  };
  EXPECT_EQ(first({{0, {with_gradient(1)}}, {1, {with_gradient(2)}}}),
            "first operation that differs: add_ on \"w\": rank 1 has a different result, because its gradient differed "
            "already: it was not reduced, the reduction gave ranks other values, or it was changed afterwards");
}

// With momentum the optimizer adds a buffer of its own.
TEST(FirstDivergence, AGradientThatCameByAnotherTensor) {
  const auto with_gradient = [](std::uint64_t hash) {
    return Write{"w", "add_", {}, hash, {{"other", false, hash}}, "", hash};
  };
  EXPECT_EQ(first({{0, {with_gradient(1)}}, {1, {with_gradient(2)}}}),
            "first operation that differs: add_ on \"w\": rank 1 has a different result, because its argument "
            "\"other\" differed already, as did the gradient: it was not reduced, the reduction gave ranks other "
            "values, or it "
            "was changed afterwards");
}

TEST(FirstDivergence, OneMoreOrAnotherCall) {
  EXPECT_EQ(first({{0, {write("add_", 1)}}, {1, {write("add_", 1)}}, {2, {write("add_", 1), write("mul_", 2)}}}),
            "first operation that differs: ranks 0-1 make no further change before the check; rank 2: mul_ on \"w\"");
  EXPECT_EQ(first({{0, {write("add_", 1)}}, {1, {write("zero_", 1)}}}),
            "first operation that differs: rank 0: add_ on \"w\"; rank 1: zero_ on \"w\"");
}

TEST(FirstDivergence, NoOperatorDidIt) {
  EXPECT_EQ(first({{0, {write("add_", 1)}}, {1, {write("add_", 1)}}}),
            "all operators wrote the same on all ranks: a collective wrote the difference, or code that bypasses "
            "LibTorch's dispatcher");
}

}  // namespace
