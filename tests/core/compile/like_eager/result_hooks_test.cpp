// SPDX-License-Identifier: BSD-3-Clause
// Hooks that callers register on results of compiled functions run at the same points and equally often as in eager
// mode, also if the function registers hooks itself.
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/module_hooks.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;

const char* const kBackends[] = {"eager", "aot_eager"};

// The gradient at y is 1. The function's hook adds 1, then the caller's hook multiplies by 10.
TEST(ResultHooks, OfTheCaller_RunAfterThoseOfTheFunction) {
  const auto f = [](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
    return y;
  };
  const auto gradient_of = [](const auto& function) {
    const at::Tensor x = at::zeros({2}).requires_grad_();
    at::Tensor y = function(x);
    y.register_hook([](const at::Tensor& gradient) { return gradient * 10; });
    y.retain_grad();
    y.sum().backward();
    return Tensors{x.grad(), y.grad()};
  };
  const Tensors expected = gradient_of(f);
  EXPECT_THAT(expected[0], BitEqual(at::full({2}, 20.0)));
  for (const char* const backend : kBackends) {
    auto compiled = compile(f, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const Tensors found = gradient_of([&](const at::Tensor& x) { return compiled(x); });
      EXPECT_THAT(found[0], BitEqual(expected[0])) << backend;
      EXPECT_THAT(found[1], BitEqual(expected[1])) << backend;
    }
  }
}

std::shared_ptr<ModuleHooks<torch::nn::Linear>> linear_with_hooks() {
  auto module = std::make_shared<ModuleHooks<torch::nn::Linear>>(torch::nn::Linear(2, 2));
  const at::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.fill_(0.5);
  return module;
}

// The hooks of a module have an autograd node of their own. A backward runs the hooks on the module's result before it
// reaches this node.
TEST(ResultHooks, OfTheCaller_RunBeforeThoseOfTheModule) {
  const auto build = [] {
    auto module = linear_with_hooks();
    module->register_full_backward_pre_hook([](auto&, auto& outputs) { outputs[0] = outputs[0] + 1; });
    module->register_full_backward_hook([](auto&, auto& inputs, const auto&) { inputs[0] = inputs[0] * 3; });
    return module;
  };
  const auto gradients_of = [](const auto& function, const std::vector<at::Tensor>& parameters) {
    const at::Tensor x = at::ones({3, 2}).requires_grad_();
    at::Tensor y = function(x);
    y.register_hook([](const at::Tensor& gradient) { return gradient * 10; });
    y.retain_grad();
    y.sum().backward();
    return Tensors{x.grad(), y.grad(), parameters[0].grad(), parameters[1].grad()};
  };
  const auto eager = build();
  const Tensors expected = gradients_of([&](const at::Tensor& x) { return eager->forward(x); }, eager->parameters());
  EXPECT_THAT(expected[1], BitEqual(at::full({3, 2}, 10.0)));
  for (const char* const backend : kBackends) {
    const auto module = build();
    auto compiled = compile(module, {.backend = backend, .fullgraph = true});
    const Tensors found = gradients_of([&](const at::Tensor& x) { return compiled(x); }, module->parameters());
    EXPECT_THAT(found, BitEqual(expected)) << backend;
  }
}

// All results of a graph share one autograd node, which runs in a backward from any of them.
TEST(ResultHooks, OfAResultThatTheBackwardDoesNotReach_AreNotCalled) {
  const auto f = [](const at::Tensor& a, const at::Tensor& b) { return std::tuple(a.sin(), b.exp()); };
  for (const char* const backend : kBackends) {
    auto compiled = compile(f, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
      const auto [x, y] = compiled(a, b);
      int of_x = 0, of_y = 0;
      x.register_hook([&](const at::Tensor&) { ++of_x; });
      y.register_hook([&](const at::Tensor& gradient) { return ++of_y, gradient * 2; });
      x.sum().backward({}, true);
      EXPECT_EQ(std::pair(of_x, of_y), std::pair(1, 0)) << backend;
      EXPECT_THAT(a.grad(), BitEqual(a.detach().cos())) << backend;
      EXPECT_FALSE(b.grad().defined() && b.grad().ne(0).any().item<bool>()) << backend;
      y.sum().backward();
      EXPECT_EQ(std::pair(of_x, of_y), std::pair(1, 1)) << backend;
      EXPECT_THAT(b.grad(), BitEqual(b.detach().exp() * 2)) << backend;
    }
  }
}

// The code registers a hook after a read. No graph can hold this hook, so the call goes on in eager mode, with the hook
// on a result of the graph.
TEST(ResultHooks, BehindARead_AreNotCalledWithoutAGradient) {
  const at::Tensor seen = at::zeros({1});
  const auto f = [seen](const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor y = a.sin(), z = b.exp();
    const double factor = (z.sum() > 5).item<bool>() ? 2 : 3;
    z.register_hook([seen](const at::Tensor&) { seen.add_(100); });
    return y * factor;
  };
  for (const char* const backend : kBackends) {
    auto compiled = compile(f, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
      compiled(a, b).sum().backward();
      EXPECT_EQ(seen.item<float>(), 0) << backend;
      EXPECT_THAT(a.grad(), BitEqual(2 * a.detach().cos())) << backend;
    }
  }
}

// The module's hook replaces the gradient by an undefined tensor. In eager mode, the gradient is then missing. A
// recorded graph cannot have a missing gradient.
TEST(ResultHooks, OfAModuleThatLeavesNoGradient_AreRefused) {
  const auto with = [](bool pre) {
    auto module = linear_with_hooks();
    if (pre) module->register_full_backward_pre_hook([](auto&, auto& outputs) { outputs[0] = at::Tensor(); });
    if (!pre) module->register_full_backward_hook([](auto&, auto& inputs, const auto&) { inputs[0] = at::Tensor(); });
    return module;
  };
  for (const char* const backend : kBackends) {
    for (const bool pre : {false, true}) {
      const auto module = with(pre);
      auto strict = compile(module, {.backend = backend, .fullgraph = true});
      try {
        strict(at::ones({3, 2}).requires_grad_());
        ADD_FAILURE() << backend << pre;
      } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("a backward hook of a module that leaves a gradient undefined"));
      }
      auto compiled = compile(with(pre), {.backend = backend});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = at::ones({3, 2}).requires_grad_();
        compiled(x).sum().backward();
        EXPECT_FALSE(x.grad().defined()) << backend << pre << call;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler
