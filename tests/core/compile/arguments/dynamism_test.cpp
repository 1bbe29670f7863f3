// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <ATen/core/ATen_fwd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/arguments/dynamism.h"

namespace rehearse::compiler {
namespace {

using ::testing::ElementsAre;

std::vector<bool> dynamic_sizes(const Dynamism& dynamism, std::size_t dimensions) {
  std::vector<bool> dynamic;
  for (std::size_t d = 0; d < dimensions; ++d) dynamic.push_back(dynamism.is_dynamic_size("x", d));
  return dynamic;
}

TEST(Dynamism, ASecondValueMakesASizeDynamic) {
  Dynamism dynamism(std::nullopt);
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(false, false));
  dynamism.absorb_tensor("x", {4, 8});
  dynamism.absorb_tensor("x", {4, 8});
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(false, false));
  dynamism.absorb_tensor("x", {5, 8});
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(true, false));
  dynamism.absorb_tensor("x", {4, 8});
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(true, false));
  EXPECT_FALSE(dynamism.is_dynamic_size("y", 0));
}

// PyTorch's ndim_change: if a tensor had another number of dimensions before, all its sizes become dynamic.
TEST(Dynamism, AnotherNumberOfDimensionsMakesAllDynamic) {
  Dynamism dynamism(std::nullopt);
  dynamism.absorb_tensor("x", {4});
  dynamism.absorb_tensor("x", {4, 8});
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(true, true));
  EXPECT_THAT(dynamic_sizes(dynamism, 3), ElementsAre(true, true, true));
}

TEST(Dynamism, AnIntegerIsDynamicFromItsSecondValue) {
  Dynamism dynamism(std::nullopt);
  dynamism.absorb_int("x", 3);
  dynamism.absorb_int("x", 3);
  EXPECT_FALSE(dynamism.is_dynamic_int("x"));
  dynamism.absorb_int("x", 4);
  EXPECT_TRUE(dynamism.is_dynamic_int("x"));
}

TEST(Dynamism, AnotherKindMakesDynamic) {
  Dynamism dynamism(std::nullopt);
  dynamism.absorb_tensor("x", {10});
  dynamism.absorb_int("x", 12);
  EXPECT_TRUE(dynamism.is_dynamic_int("x"));
  EXPECT_THAT(dynamic_sizes(dynamism, 1), ElementsAre(true));
}

TEST(Dynamism, TheUserMayDecideForAll) {
  Dynamism always(true), never(false);
  never.absorb_tensor("x", {4});
  never.absorb_tensor("x", {5});
  EXPECT_TRUE(always.is_dynamic_size("x", 0));
  EXPECT_TRUE(always.is_dynamic_int("k"));
  EXPECT_FALSE(never.is_dynamic_size("x", 0));
}

// A mark stays if later calls do not repeat it, and overrides observed values. If one dimension is marked dynamic and
// static, it is dynamic.
TEST(Dynamism, MarksHoldForOneDimension) {
  Dynamism dynamism(std::nullopt);
  dynamism.mark_dynamic("x", 1, 2);
  dynamism.mark_static("x", 0);
  dynamism.absorb_tensor("x", {4, 8});
  dynamism.absorb_tensor("x", {5, 8});
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(false, true));
  dynamism.mark_dynamic("x", 0, 2);
  EXPECT_THAT(dynamic_sizes(dynamism, 2), ElementsAre(true, true));
}

}  // namespace
}  // namespace rehearse::compiler
