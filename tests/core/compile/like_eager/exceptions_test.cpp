// SPDX-License-Identifier: BSD-3-Clause
// Differences from eager mode that docs/COMPILE.md lists ("What cannot be captured"). Each test fails if both modes
// agree. In that case, remove the difference from that list.
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::exceptions_test {
namespace {

using rehearse::test::BitEqual;

TEST(ExceptionsFromEager, AnErrorOfAnUnusedResult) {
  const auto function = [](const at::Tensor& x, const at::Tensor& index) {
    x.gather(0, index);
    return x * 2;
  };
  auto compiled = compile(function);
  const at::Tensor x = at::ones({3}), index = at::full({1}, 7, at::kLong);
  EXPECT_THROW(function(x, index), c10::Error);
  EXPECT_THAT(compiled(x, index), BitEqual(x * 2));
}

TEST(ExceptionsFromEager, HowMuchMemoryATensorHas) {
  const auto function = [](const at::Tensor& x) { return x * static_cast<double>(x.storage().nbytes()); };
  auto compiled = compile(function);
  const at::Tensor rows = at::ones({3, 2});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({2})), BitEqual(function(at::ones({2}))));
  EXPECT_FALSE(compiled(rows[2]).equal(function(rows[2])));
}

TEST(ExceptionsFromEager, AHookOfAResultThatAnotherResultIsMadeOf) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    return std::vector<at::Tensor>{y, y * 3};
  };
  auto compiled = compile(function);
  const auto gradient_at_hook = [](auto&& f) {
    const std::vector<at::Tensor> results = f(at::ones({}).requires_grad_());
    at::Tensor seen;
    results[0].register_hook([&](const at::Tensor& gradient) { seen = gradient; });
    (results[0] + results[1]).backward();
    return seen.item<double>();
  };
  EXPECT_EQ(gradient_at_hook(function), 4);
  EXPECT_EQ(gradient_at_hook(compiled), 1);
}

TEST(ExceptionsFromEager, GradientsOfGradients) {
  const auto function = [](const at::Tensor& x) { return x * x * x; };
  auto compiled = compile(function);
  auto by_eager = compile(function, {.backend = "eager"});
  const auto second = [](auto&& f) {
    const at::Tensor x = at::full({}, 2.0).requires_grad_();
    const at::Tensor first = torch::autograd::grad({f(x)}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
    return torch::autograd::grad({first}, {x})[0].item<double>();
  };
  EXPECT_EQ(second(function), 12);
  EXPECT_EQ(second(by_eager), 12);
  EXPECT_THROW(second(compiled), c10::Error);
}

TEST(ExceptionsFromEager, ABackwardOfAnArgumentThatWasChangedLater) {
  const auto function = [](const at::Tensor& x, at::Tensor& y) {
    y.mul_(x).relu_();
    EXPECT_TRUE((x.sum() > 0).item<bool>());
    y.add_(x);
  };
  auto compiled = compile(function);
  const auto gradient_by = [](auto& by) {
    const at::Tensor x = at::ones({3}).requires_grad_();
    at::Tensor y = at::full({3}, 2.0);
    by(x, y);
    y.sum().backward();
    return x.grad();
  };
  EXPECT_THROW(gradient_by(function), c10::Error);
  EXPECT_THAT(gradient_by(compiled), BitEqual(at::full({3}, 3.0)));
}

// Autograd refuses an in-place change of a leaf. Compiled code throws this error when the graph runs, and the argument
// `calls` stays unchanged.
TEST(ExceptionsFromEager, WhatACallChangedBeforeItThrew) {
  const auto function = [](const at::Tensor& x, std::int64_t& calls) {
    ++calls;
    return x.add_(1);
  };
  auto compiled = compile(function);
  const at::Tensor leaf = at::ones({3}).requires_grad_();
  std::int64_t by_eager = 0, by_graph = 0;
  EXPECT_THROW(function(leaf, by_eager), c10::Error);
  EXPECT_THROW(compiled(leaf, by_graph), c10::Error);
  EXPECT_EQ(by_eager, 1);
  EXPECT_EQ(by_graph, 0);
}

// The gradient of `x` has one term for each result. Eager mode adds the term of the result that is `x` itself last.
TEST(ExceptionsFromEager, InWhichOrderGradientsAreAdded) {
  const at::Tensor scales = at::arange(64, at::kFloat) / 7;
  const auto function = [&](const at::Tensor& x) {
    return std::vector<at::Tensor>{x, x * scales, x.view({64}), x * 0.7, x.sin()};
  };
  auto compiled = compile(function);
  const auto gradient = [](auto& f) {
    const at::Tensor x = at::ones({64}).requires_grad_();
    std::vector<at::Tensor> results = f(x);
    std::vector<at::Tensor> tangents;
    for (const at::Tensor& result : results) tangents.push_back(at::full_like(result.detach(), 0.3));
    torch::autograd::backward(results, tangents);
    return x.grad();
  };
  const at::Tensor found = gradient(compiled), expected = gradient(function);
  EXPECT_TRUE(at::allclose(found, expected, 1e-6, 0));
  EXPECT_FALSE(found.equal(expected));
}

TEST(ExceptionsFromEager, SetRequiresGradOfWhatAFunctionFinds) {
  torch::nn::Linear layer(2, 2);
  const auto function = [&](const at::Tensor& x) {
    layer->weight.set_requires_grad(!layer->weight.requires_grad());
    return at::linear(x, layer->weight);
  };
  auto compiled = compile(function, {.verify = Verify::Never});
  for (int call = 0; call < 3; ++call) {
    compiled(at::ones({1, 2}));
    EXPECT_FALSE(layer->weight.requires_grad());  // switched only once
  }
}

}  // namespace
}  // namespace rehearse::compiler::exceptions_test
