// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/toy.h"
#include "traced.h"

#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::capture::test {
namespace {

TEST(CaptureMlp, Toy_IsFourLinearsAndFourReLUs) {
  rehearse::test::Toy toy(rehearse::test::ToyShape{10, 50, 5});
  const auto captured = trace_module(toy, at::randn({20, 10}));
  EXPECT_EQ(targets(captured), (Names{kLinear, "relu.default", kLinear, "relu.default", kLinear, "relu.default",
                                      kLinear, "relu.default"}));
  EXPECT_EQ(placeholders(captured), (Names{"net.0.weight", "net.0.bias", "x0", "net.2.weight", "net.2.bias",
                                           "net.4.weight", "net.4.bias", "net.6.weight", "net.6.bias"}));
  expect_same(captured, forward_of(toy), {at::randn({20, 10})}, toy->parameters());
}

TEST(CaptureMlp, Toy_IsReplayedAtOtherBatchesAndWithGradientsOfItsInput) {
  rehearse::test::Toy toy(rehearse::test::ToyShape{10, 50, 5});
  const auto captured = trace_module(toy, at::randn({20, 10}).requires_grad_(), {{0, 0}});
  EXPECT_EQ(captured.remarks.size(), 0U);
  EXPECT_EQ(captured.shapes->guards().size(), 0U);
  for (const std::int64_t batch : {20, 2, 33}) {
    expect_same(captured, forward_of(toy), {at::randn({batch, 10}).requires_grad_()}, toy->parameters());
  }
}

}  // namespace
}  // namespace rehearse::capture::test
