// SPDX-License-Identifier: BSD-3-Clause
// Contract: ratio_of() finds the ratio of a gradient to the gradient of a single process, and meaning_of() explains the
// ratio.
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "checks/values/gradient_ratio.h"

namespace {

using namespace rehearse::checks;
using Kind = GradientRatio::Kind;

const at::Tensor kReference = at::arange(1, 7, at::kDouble).view({2, 3});

GradientRatio of(const at::Tensor& gradient, const at::Tensor& reference = kReference) {
  return ratio_of(gradient, reference, 10, 0);
}

std::string meaning(double ratio, int ranks) { return meaning_of(of(kReference * ratio), ranks); }

TEST(GradientRatio, RoundingIsNoDifference) {
  EXPECT_EQ(of(kReference).kind, Kind::equal);
  EXPECT_EQ(of(kReference * (1 + 1e-9)).kind, Kind::equal);
  EXPECT_EQ(of(kReference.to(at::kFloat) * (1 + 1e-5), kReference.to(at::kFloat)).kind, Kind::equal);
  EXPECT_EQ(of(at::full({2, 3}, 1e-12, at::kDouble), at::zeros({2, 3}, at::kDouble)).kind, Kind::equal);
}

TEST(GradientRatio, AMultipleIsMeasured) {
  const auto found = of(kReference * 0.25);
  EXPECT_EQ(found.kind, Kind::multiple);
  EXPECT_DOUBLE_EQ(found.ratio, 0.25);
}

TEST(GradientRatio, WhatIsNoMultiple) {
  EXPECT_EQ(of(kReference.flip({0, 1})).kind, Kind::no_multiple);
  EXPECT_EQ(of(at::zeros({2, 3}, at::kDouble)).kind, Kind::missing);
  EXPECT_EQ(of(at::Tensor()).kind, Kind::missing);
  EXPECT_EQ(of(kReference, at::Tensor()).kind, Kind::unexpected);
  EXPECT_EQ(of(at::Tensor(), at::Tensor()).kind, Kind::equal);
  EXPECT_EQ(of(kReference.flatten()).kind, Kind::other_shape);
  EXPECT_EQ(of(kReference * std::numeric_limits<double>::quiet_NaN()).kind, Kind::not_finite);
}

TEST(GradientRatio, MeaningsAmongFourRanks) {
  EXPECT_EQ(meaning(0.25, 4),
            "0.25 times as large (= 1 / number of ranks): averaged twice (a loss divided by the number of ranks, and a "
            "reduction that divides, too)");
  EXPECT_EQ(
      meaning(4, 4),
      "4 times as large (= number of ranks): a sum over the ranks, or over a batch of 4, where the mean is meant");
  EXPECT_EQ(meaning(16, 4), "16 times as large (= number of ranks squared): summed over the ranks twice");
  EXPECT_EQ(meaning(0.0625, 4), "0.0625 times as large (= 1 / number of ranks squared): averaged three times");
  EXPECT_EQ(meaning(2, 4),
            "2 times as large: counted twice (reduced twice, a second backward, or no zero_grad), or a sum over a "
            "batch of 2 where the mean is meant");
  EXPECT_EQ(meaning(3, 4), "3 times as large: added up 3 times, or a sum over a batch of 3 where the mean is meant");
  EXPECT_EQ(meaning(1.0 / 3, 4), "0.333333 times as large: divided by 3 once too often");
  EXPECT_EQ(meaning(-1, 4), "-1 times as large: the sign is reversed");
  EXPECT_EQ(meaning(0.7, 4), "0.7 times as large: scaled, as by clipping or a loss scale");
}

TEST(GradientRatio, AmongTwoRanks_TwoMayBeEither) {
  EXPECT_EQ(meaning(2, 2),
            "2 times as large (= number of ranks): a sum where the mean is meant, or reduced or added up twice");
}

// The number of ranks equals the batch size. The kind of reduction tells which of the two the factor comes from.
TEST(GradientRatio, NTimes_IsOfTheRanksOrOfTheBatch) {
  const auto four = of(kReference * 4), two = of(kReference * 2);
  EXPECT_EQ(meaning_of(four, 4, Reduced::sum),
            "4 times as large (= number of ranks): a sum over the ranks where the mean is meant");
  EXPECT_EQ(meaning_of(four, 4, Reduced::mean),
            "4 times as large (= number of ranks), although the reduction takes the mean: each rank's loss is a sum "
            "over a batch of 4 where the mean is meant, or is multiplied by the number of ranks");
  EXPECT_EQ(meaning_of(two, 2, Reduced::mean),
            "2 times as large (= number of ranks), although the reduction takes the mean: each rank's loss is a sum "
            "over a batch of 2 where the mean is meant, or is multiplied by the number of ranks, or was counted twice "
            "(a second backward, or no zero_grad)");
}

}  // namespace
