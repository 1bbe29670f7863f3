// SPDX-License-Identifier: BSD-3-Clause
// Mixed precision: parameters, reductions and buffers in other dtypes.
#include <gtest/gtest.h>

#include "core/parallel/recorded/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;
using rehearse::MixedPrecision;

// Tolerances for a few roundings of parameters and sums.
constexpr double kOfFloat = 1e-6, kOfHalf = 4e-3, kOfBrain = 3.2e-2;

template <class Net>
void expect_mixed(const std::string& name, const MixedPrecision& dtypes, double relative, Options options = {}) {
  options.mixed_precision = dtypes;
  expect_recorded("mixed_precision_" + name, training<Net>({.options = options, .idle = 1}, kSum, kNothing),
                  {.relative = relative, .exact_at_first = false});
}

TEST(DdpRecordedMixedPrecision, Single) {
  expect_mixed<recorded::Mlp>("single", {at::kFloat, at::kFloat, at::kFloat}, kOfFloat, {.bucket_cap_mb = kSmall});
}
TEST(DdpRecordedMixedPrecision, Half) {
  expect_mixed<recorded::Mlp>("half", {at::kHalf, at::kHalf, at::kHalf}, kOfHalf);
}
TEST(DdpRecordedMixedPrecision, WideReduction) {
  expect_mixed<recorded::Mlp>("wide_reduction", {at::kBFloat16, at::kDouble, std::nullopt}, kOfBrain,
                              {.bucket_cap_mb = kSmall});
}
TEST(DdpRecordedMixedPrecision, ParametersAlone) {
  expect_mixed<recorded::Mlp>("parameters_alone", {.param_dtype = at::kBFloat16}, kOfBrain);
}
TEST(DdpRecordedMixedPrecision, Buffers) {
  expect_mixed<Norm>("buffers", {at::kFloat, at::kFloat, at::kFloat}, kOfFloat);
}
TEST(DdpRecordedMixedPrecision, Frozen) {
  expect_mixed<Frozen>("frozen", {at::kFloat, at::kFloat, std::nullopt}, kOfFloat);
}

}  // namespace
