// SPDX-License-Identifier: BSD-3-Clause
// Contract: WeightFit finds the weights with which parts add up to a whole, if exactly one answer exists and has no
// negative weight. Otherwise WeightFit finds no weights.
#include "checks/values/weight_fit.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

namespace {

using namespace rehearse::checks;

const at::Tensor kFirst = at::arange(1, 7, at::kDouble), kSecond = kFirst.cos();

std::optional<std::vector<double>> weights_of(const std::vector<at::Tensor>& parts, const at::Tensor& whole) {
  WeightFit fit(parts.size());
  fit.add(parts, whole);
  return fit.weights(1e-6);
}

TEST(WeightFit, WeightsOfASum_AreFound) {
  const auto weights = weights_of({kFirst, kSecond}, kFirst * 0.25 + kSecond * 3);
  ASSERT_TRUE(weights);
  EXPECT_NEAR((*weights)[0], 0.25, 1e-12);
  EXPECT_NEAR((*weights)[1], 3, 1e-12);
}

TEST(WeightFit, OfSeveralWholes_AreThoseOfAll) {
  WeightFit fit(2);
  fit.add({kFirst.narrow(0, 0, 2), kSecond.narrow(0, 0, 2)}, (kFirst + kSecond).narrow(0, 0, 2));
  EXPECT_FALSE(fit.weights(1e-6)) << "two numbers fit any two parts";
  fit.add({kFirst, kSecond}, kFirst * 2 + kSecond);
  EXPECT_FALSE(fit.weights(1e-6)) << "other weights than before";
}

TEST(WeightFit, WhatIsNotOfTheParts_HasNone) { EXPECT_FALSE(weights_of({kFirst, kSecond}, kFirst.sin())); }

TEST(WeightFit, PartsThatAreAlike_HaveNone) { EXPECT_FALSE(weights_of({kFirst, kFirst}, kFirst)); }

TEST(WeightFit, ANegativeWeight_IsNone) { EXPECT_FALSE(weights_of({kFirst, kSecond}, kFirst - kSecond)); }

}  // namespace
