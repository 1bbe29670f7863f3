// SPDX-License-Identifier: BSD-3-Clause
// Contract: the checks that a rank makes alone, in runs whose ranks cannot compare their values.
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "checks/local_checks.h"

namespace {

using namespace rehearse::checks;

at::Tensor trained() { return at::ones({3}, at::kDouble).requires_grad_(); }

TEST(LocalChecks, GradientsAgainstOneProcess) {
  auto weight = trained();
  const auto loss = [&] { return (weight * weight).sum(); };
  const auto generator = at::detail::createCPUGenerator(1);
  const auto found = [&] { return gradients_here(1, 4, {{"w", weight}}, generator, loss, {}); };
  loss().backward();
  EXPECT_FALSE(found().has_value());
  weight.mutable_grad().mul_(4);
  const auto finding = found();
  ASSERT_TRUE(finding.has_value());
  EXPECT_TRUE(
      finding->headline.ends_with("the gradient of \"w\" is 4 times as large (= number of ranks): a sum over the "
                                  "ranks, or over a batch of 4, where the mean is meant"))
      << finding->headline;
  EXPECT_EQ(text_of(*finding), finding->headline);
}

TEST(LocalChecks, FiniteNumbers) {
  EXPECT_FALSE(finite_here(2, {{"w", at::ones({3})}}, {}).has_value());
  const auto finding =
      finite_here(2, {{"w", at::full({3}, std::numeric_limits<double>::infinity())}}, {.name = "losses"});
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->headline,
            "\"w\" of rank 2 is not finite in check #2 of \"losses\": Inf in 3 of 3 elements, first at [0]");
  EXPECT_EQ(finding->ranks, std::vector<int>{2});
}

}  // namespace
