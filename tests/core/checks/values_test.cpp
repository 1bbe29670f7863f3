// SPDX-License-Identifier: BSD-3-Clause
// Contract: which values count as equal, and the texts for values that differ or are not finite.
#include <cmath>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/checks/model_state.h>
#include <rehearse_internal/checks/non_finite.h>

#include "checks/values/tensor_difference.h"

namespace {

using namespace rehearse::checks;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

TEST(StateValues, NanIsAsNan_AndZeroAsMinusZero) {
  EXPECT_TRUE(same_values(at::full({3}, kNan), at::full({3}, kNan)));
  EXPECT_TRUE(same_values(at::full({3}, kNan), at::full({3}, -kNan)));
  EXPECT_TRUE(same_values(at::full({3}, 0.0), at::full({3}, -0.0)));
  EXPECT_FALSE(same_values(at::full({3}, kNan), at::full({3}, 1.0)));
}

TEST(StateValues, StridesDoNotCount) {
  const auto a = at::ones({2, 3}).cumsum(0);
  EXPECT_TRUE(same_values(a, a.t().contiguous().t()));
  EXPECT_FALSE(same_values(a, a.t().contiguous()));
}

TEST(StateValues, DtypesAndSizesCount) {
  EXPECT_FALSE(same_values(at::ones({3}, at::kFloat), at::ones({3}, at::kDouble)));
  EXPECT_FALSE(same_values(at::ones({3}), at::ones({1, 3})));
  EXPECT_EQ(difference_text(at::ones({3}, at::kFloat), at::ones({3}, at::kDouble)), "Float of [3], not Double of [3]");
  EXPECT_EQ(difference_text(at::ones({3}), at::Tensor()), "Float of [3], not undefined");
}

TEST(StateValues, EmptyAndUndefinedOnesAreTheSame) {
  EXPECT_TRUE(same_values(at::empty({0, 4}), at::empty({0, 4})));
  EXPECT_TRUE(same_values(at::Tensor(), at::Tensor()));
  EXPECT_FALSE(same_values(at::Tensor(), at::empty({0})));
}

TEST(StateValues, DifferenceNamesTheLargest) {
  auto a = at::ones({2, 3}, at::kDouble), b = at::ones({2, 3}, at::kDouble);
  b[0][1] = 1.5;
  b[1][2] = 3;
  EXPECT_EQ(difference_text(a, b), "2 of 6 elements, by up to 2 at [1, 2]: 1, not 3");
  b[0][0] = kNan;
  EXPECT_EQ(difference_text(a, b), "3 of 6 elements, at [0, 0]: 1, not nan");
}

TEST(StateValues, OtherDtypesAreCompared) {
  for (const auto type : {at::kLong, at::kBool, at::kHalf, at::kBFloat16, at::kComplexFloat, at::kByte}) {
    const auto a = at::ones({4}, type), b = at::zeros({4}, type);
    EXPECT_TRUE(same_values(a, a.clone())) << type;
    EXPECT_FALSE(same_values(a, b)) << type;
    EXPECT_EQ(difference_text(b, a).find("4 of "), 0u) << type;
  }
}

TEST(StateValues, NonFiniteIsFoundInEveryLayout) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    auto values = at::ones({4, 5}, type);
    EXPECT_FALSE(has_non_finite(values));
    values[2][3] = kInf;
    EXPECT_TRUE(has_non_finite(values));
    EXPECT_TRUE(has_non_finite(values.t()));
    EXPECT_EQ(non_finite_text(values), "Inf in 1 of 20 elements, first at [2, 3]");
    values[1][0] = kNan;
    EXPECT_EQ(non_finite_text(values), "NaN and Inf in 2 of 20 elements, first at [1, 0]");
  }
  EXPECT_FALSE(has_non_finite(at::ones({3}, at::kLong)));
  EXPECT_FALSE(has_non_finite(at::empty({0})));
  EXPECT_FALSE(has_non_finite(at::Tensor()));
}

// The check must not overflow on many copies of the largest finite number.
TEST(StateValues, LargeNumbersAreFinite) {
  EXPECT_FALSE(has_non_finite(at::full({1000}, std::numeric_limits<float>::max(), at::kFloat)));
  EXPECT_FALSE(has_non_finite(at::full({1000}, std::numeric_limits<double>::lowest(), at::kDouble)));
}

TEST(ModelState, OfAModule_HasParametersThenBuffers_EachOnce) {
  torch::nn::BatchNorm1d norm(4);
  const ModelState state(norm);
  std::vector<std::string> names;
  for (const auto& each : state.tensors()) names.push_back(each.name + (each.is_buffer ? " (buffer)" : ""));
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias", "running_mean (buffer)", "running_var (buffer)",
                                             "num_batches_tracked (buffer)"}));
  EXPECT_EQ(state.with_buffers(false).tensors().size(), 2u);
  EXPECT_EQ(state.with_buffers({}).tensors().size(), 5u);
}

TEST(ModelState, OfWhatWrapsAModule) {
  torch::nn::Linear linear(2, 3);
  EXPECT_EQ(ModelState(linear).tensors().size(), 2u);
  EXPECT_EQ(ModelState(*linear).tensors().size(), 2u);
  EXPECT_EQ(ModelState(linear.ptr()).tensors().size(), 2u);
  EXPECT_EQ(ModelState({{"w", linear->weight}}).tensors().size(), 1u);
  EXPECT_EQ(ModelState(*linear, {"bias"}).tensors().size(), 1u);
  EXPECT_EQ(ModelState(std::vector<NamedTensor>()).tensors().size(), 0u);
}

}  // namespace
