// SPDX-License-Identifier: BSD-3-Clause
// A back end may change the memory layout of a graph's outputs. The results of the compiled function must still have
// the layout of eager mode.
#include <memory>
#include <tuple>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/partitions/layout_backend.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using test::LayoutBackend;
using test::OutputLayout;
using test::Statement;

// If elements of a result share memory, restoring the result's layout writes to the same memory several times. The
// gradient of each element must still count once.
TEST(OutputLayoutsOfResults, WindowsThatOverlap) {
  const auto windows = [](const at::Tensor& x) { return (x + 0).unfold(0, 2, 1); };
  const at::Tensor gradient = at::arange(24, at::kFloat).view({3, 4, 2});
  const at::Tensor eager = at::rand({4, 4}).requires_grad_();
  windows(eager).backward(gradient);
  for (const char* inner : {"aot_eager", "eager"}) {
    for (const Statement statement : {Statement::True, Statement::None}) {
      const at::Tensor x = eager.detach().clone().requires_grad_();
      auto compiled =
          compile(windows, {.backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement, inner)});
      const at::Tensor result = compiled(x);
      EXPECT_EQ(result.strides(), (at::IntArrayRef{4, 1, 4}));
      result.backward(gradient);
      EXPECT_THAT(x.grad(), BitEqual(eager.grad())) << inner;
    }
  }
}

// at::add_out() calls add.out, in whose schema `out` is a keyword argument. The result shares memory with `out` and
// with all views of `out`.
TEST(OutputLayoutsOfResults, WhatAnOutOverloadReturnsSharesItsMemory) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor sum = x * 1;
    const at::Tensor view = sum.t();
    return std::tuple(view, at::add_out(sum, x, x));
  };
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  for (const char* inner : {"aot_eager", "eager"}) {
    for (const Statement statement : {Statement::True, Statement::None}) {
      auto compiled =
          compile(function, {.backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement, inner)});
      const auto [view, sum] = compiled(x);
      EXPECT_TRUE(sum.is_alias_of(view)) << inner;
      sum.mul_(2);
      EXPECT_THAT(view, BitEqual((x * 4).t())) << inner;
    }
  }
}

TEST(OutputLayoutsOfResults, AViewThatIsMadeWithoutGradModeInside) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const Function part = [](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    const at::NoGradGuard no_grad;
    return y.narrow(0, 0, 2);
  };
  const Function repeated = [](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    const at::NoGradGuard no_grad;
    return y.unsqueeze(0).expand({2, 3, 4});
  };
  for (const Function function : {part, repeated}) {
    const at::Tensor x = at::ones({3, 4}).requires_grad_(), eager = function(x);
    for (const OutputLayout layout : {OutputLayout::Padded, OutputLayout::Reversed}) {
      auto compiled = compile(function, {.backend = std::make_shared<LayoutBackend>(layout, Statement::True)});
      const at::Tensor result = compiled(x);
      EXPECT_THAT(result, BitEqual(eager));
      EXPECT_EQ(result.strides(), eager.strides());
      EXPECT_EQ(result.requires_grad(), eager.requires_grad());
      EXPECT_EQ(result.is_leaf(), eager.is_leaf());
    }
  }
}

// The caller has switched grad mode off. In this mode, a view of a leaf requires a gradient and has no history. A
// tensor that the function computes in grad mode keeps its history.
TEST(OutputLayoutsOfResults, OfCallsWithoutGradMode) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const Function part_of_leaf = [](const at::Tensor& x) {
    return (x.detach() * 0.25).requires_grad_().narrow(0, 0, 2);
  };
  const Function with_history = [](const at::Tensor& x) {
    const at::AutoGradMode with_gradients(true);
    return x * 3;
  };
  for (const Function function : {part_of_leaf, with_history}) {
    for (const OutputLayout layout : {OutputLayout::Padded, OutputLayout::Reversed}) {
      for (const Statement statement : {Statement::True, Statement::None}) {
        const at::Tensor x = at::ones({3, 4}).requires_grad_();
        const at::NoGradGuard no_grad;
        auto compiled = compile(function, {.backend = std::make_shared<LayoutBackend>(layout, statement)});
        const at::Tensor result = compiled(x), eager = function(x);
        EXPECT_TRUE(result.requires_grad() && eager.requires_grad());
        EXPECT_EQ(result.is_leaf(), eager.is_leaf());
        if (function == with_history) result.backward(at::ones({3, 4}));
      }
    }
  }
}

// An empty tensor has no elements, but code can ask for its storage offset, which must be that of eager mode.
TEST(OutputLayoutsOfResults, OfEmptyTensors) {
  for (const Statement statement : {Statement::True, Statement::None}) {
    const auto function = [](const at::Tensor& x) { return -x; };
    auto compiled = compile(function, {.backend = std::make_shared<LayoutBackend>(OutputLayout::Padded, statement)});
    const at::Tensor x = at::ones({2, 0}), result = compiled(x), eager = function(x);
    EXPECT_EQ(result.sizes(), eager.sizes());
    EXPECT_EQ(result.strides(), eager.strides());
    EXPECT_EQ(result.storage_offset(), eager.storage_offset());
  }
}

}  // namespace
}  // namespace rehearse::compiler
