// SPDX-License-Identifier: BSD-3-Clause
// Contract: hooks of modules run at the same points, equally often and with the same values as in PyTorch, in eager
// mode and in a compiled function.
#include <rehearse/compile/module_hooks.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "core/compile/error_of.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using HookedLinear = ModuleHooks<torch::nn::Linear>;

std::shared_ptr<HookedLinear> hooked_linear() { return std::make_shared<HookedLinear>(torch::nn::Linear(3, 2)); }

TEST(ModuleHooks, AreCalledInOrder) {
  const auto layer = hooked_linear();
  std::vector<std::string> order;
  for (const std::string name : {"a", "b"}) {
    layer->register_full_backward_hook(
        [&order, name](auto&, Tensors&, const Tensors&) { order.push_back("backward " + name); });
    layer->register_full_backward_pre_hook(
        [&order, name](auto&, Tensors&) { order.push_back("backward pre " + name); });
    layer->register_forward_hook(
        [&order, name](auto&, const Tensors&, Tensors&) { order.push_back("forward " + name); });
    layer->register_forward_pre_hook([&order, name](auto&, Tensors&) { order.push_back("forward pre " + name); });
  }
  const at::Tensor y = layer->forward(at::ones({4, 3}).requires_grad_());
  EXPECT_THAT(order, ElementsAre("forward pre a", "forward pre b", "forward a", "forward b"));
  order.clear();
  y.sum().backward();
  EXPECT_THAT(order, ElementsAre("backward pre a", "backward pre b", "backward a", "backward b"));
}

TEST(ModuleHooks, GetGradientsOfInputsAndOutputs) {
  const auto layer = hooked_linear();
  const at::Tensor weight = layer->module().weight.detach();
  layer->register_full_backward_pre_hook([](auto&, Tensors& grad_outputs) {
    ASSERT_EQ(grad_outputs.size(), 1);
    EXPECT_THAT(grad_outputs[0], BitEqual(at::ones({4, 2})));
    grad_outputs[0] = grad_outputs[0] * 2;
  });
  layer->register_full_backward_hook(
      [&](torch::nn::LinearImpl& module, Tensors& grad_inputs, const Tensors& grad_outputs) {
        EXPECT_EQ(&module, &layer->module());
        EXPECT_THAT(grad_outputs.at(0), BitEqual(at::full({4, 2}, 2.)));
        EXPECT_THAT(grad_inputs.at(0), BitEqual(at::full({4, 2}, 2.).mm(weight)));
        grad_inputs[0] = grad_inputs[0] + 1;
      });
  const at::Tensor x = at::ones({4, 3}).requires_grad_();
  layer->forward(x).sum().backward();
  EXPECT_THAT(x.grad(), BitEqual(at::full({4, 2}, 2.).mm(weight) + 1));
  EXPECT_THAT(layer->module().bias.grad(), BitEqual(at::full({2}, 8.)));
}

TEST(ModuleHooks, ForwardHooksReplaceTensors) {
  const auto layer = hooked_linear();
  layer->register_forward_pre_hook([](auto&, Tensors& inputs) { inputs[0] = inputs[0] * 2; });
  layer->register_forward_hook(
      [](auto&, const Tensors& inputs, Tensors& outputs) { outputs[0] = outputs[0] + inputs[0].sum(); });
  const at::Tensor x = at::ones({4, 3});
  EXPECT_THAT(layer->forward(x), BitEqual(layer->module().forward(x * 2) + 24));
}

TEST(ModuleHooks, AreRemovedByTheirHandles) {
  const auto layer = hooked_linear();
  int calls = 0;
  const HookHandle first = layer->register_forward_pre_hook([&](auto&, Tensors&) { ++calls; });
  layer->register_forward_pre_hook([&](auto&, Tensors&) { calls += 10; });
  layer->forward(at::ones({1, 3}));
  first.remove();
  first.remove();
  layer->forward(at::ones({1, 3}));
  EXPECT_EQ(calls, 21);
}

// The test's backward reaches only the first of two outputs. For the second one, the hook gets zeros, as in PyTorch.
// For an input that requires no gradient, the hook gets an undefined gradient.
struct TwoImpl : torch::nn::Module {
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& a, const at::Tensor& b) { return {a * b, a.sin()}; }
};
TORCH_MODULE(Two);

TEST(ModuleHooks, OfSeveralInputsAndOutputs) {
  ModuleHooks<Two> two{Two()};
  int calls = 0;
  two.register_full_backward_hook([&](auto&, Tensors& grad_inputs, const Tensors& grad_outputs) {
    ++calls;
    ASSERT_EQ(grad_inputs.size(), 2);
    ASSERT_EQ(grad_outputs.size(), 2);
    EXPECT_THAT(grad_outputs[0], BitEqual(at::ones({3})));
    EXPECT_THAT(grad_outputs[1], BitEqual(at::zeros({3})));
    EXPECT_FALSE(grad_inputs[1].defined());
    grad_inputs[0] = grad_inputs[0] * 5;
  });
  const at::Tensor a = at::ones({3}).requires_grad_(), b = at::full({3}, 3.);
  std::get<0>(two.forward(a, b)).sum().backward();
  EXPECT_THAT(a.grad(), BitEqual(at::full({3}, 15.)));
  EXPECT_EQ(calls, 1);

  auto compiled = compile([&](const at::Tensor& x, const at::Tensor& y) { return std::get<0>(two.forward(x, y)); },
                          {.fullgraph = true});
  EXPECT_THAT(error_of([&] { compiled(a, b); }),
              HasSubstr("a module with backward hooks and several outputs that require grad"));
}

TEST(ModuleHooks, WithoutGradientsOfInputs) {
  const auto layer = hooked_linear();
  std::vector<std::string> order;
  layer->register_full_backward_pre_hook([&](auto&, Tensors&) { order.emplace_back("pre"); });
  layer->register_full_backward_hook([&](auto&, Tensors& grad_inputs, const Tensors& grad_outputs) {
    EXPECT_FALSE(grad_inputs.at(0).defined());
    EXPECT_TRUE(grad_outputs.at(0).defined());
    order.emplace_back("post");
  });
  layer->forward(at::ones({4, 3})).sum().backward();
  EXPECT_THAT(order, ElementsAre("pre", "post"));
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(layer->forward(at::ones({4, 3}).requires_grad_()).requires_grad());
  }
  layer->register_full_backward_hook(
      [](auto&, Tensors& grad_inputs, const Tensors&) { grad_inputs[0] = at::ones({4, 3}); });
  EXPECT_THAT(error_of([&] { layer->forward(at::ones({4, 3})).sum().backward(); }),
              HasSubstr("a full backward hook has given gradients of inputs, none of which requires grad"));
}

TEST(ModuleHooks, ThatThrow) {
  const auto layer = hooked_linear();
  const HookHandle throwing = layer->register_forward_pre_hook([](auto&, Tensors&) { throw std::runtime_error("no"); });
  EXPECT_EQ(error_of([&] { layer->forward(at::ones({1, 3})); }), "no");
  throwing.remove();
  const HookHandle backward = layer->register_full_backward_hook(
      [](auto&, Tensors&, const Tensors&) { throw std::runtime_error("not backward"); });
  const at::Tensor x = at::ones({1, 3}).requires_grad_();
  EXPECT_EQ(error_of([&] { layer->forward(x).sum().backward(); }), "not backward");
  backward.remove();
  layer->register_forward_hook([](auto&, const Tensors&, Tensors& outputs) { outputs.clear(); });
  EXPECT_THAT(error_of([&] { layer->forward(x); }),
              HasSubstr("ModuleHooks: a forward hook has left a list of 0 tensors, and was given 1"));
}

TEST(ModuleHooks, KeepTheirState) {
  const auto layer = hooked_linear();
  layer->register_forward_hook(
      [calls = 0](auto&, const Tensors&, Tensors& outputs) mutable { outputs[0] = outputs[0] * 0 + ++calls; });
  layer->forward(at::ones({1, 3}));
  EXPECT_EQ(layer->forward(at::ones({1, 3}))[0][0].item<int>(), 2);
}

TEST(ModuleHooks, RegisteringCompilesAnew) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    const auto layer = hooked_linear();
    auto compiled = compile(layer, {.backend = backend, .fullgraph = true, .verify = Verify::Never});
    std::optional<HookHandle> hook;
    for (int call = 0; call < 6; ++call) {
      if (call == 2) {
        hook = layer->register_full_backward_hook([](auto&, Tensors& grad_inputs, const Tensors& grad_outputs) {
          grad_inputs[0] = grad_inputs[0] * grad_outputs[0].sum();
        });
      }
      if (call == 4) hook->remove();
      const at::Tensor x = at::randn({4, 3}).requires_grad_(), same = x.detach().requires_grad_();
      compiled(x).square().sum().backward();
      layer->forward(same).square().sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend << call;
    }
    EXPECT_EQ(compiled.stats().compiles, 3) << backend;
  }
}

// Hooks of all four kinds. They use parameters and a tensor from outside.
TEST(ModuleHooks, CompiledLikeEager) {
  const auto build = [](const at::Tensor& outside) {
    at::manual_seed(5);
    torch::nn::Sequential net;
    for (int i = 0; i < 2; ++i) {
      const auto layer = std::make_shared<HookedLinear>(torch::nn::Linear(3, 3));
      layer->register_forward_pre_hook([](auto&, Tensors& inputs) { inputs[0] = inputs[0].tanh(); });
      layer->register_forward_hook(
          [](auto&, const Tensors& inputs, Tensors& outputs) { outputs[0] = outputs[0] + inputs[0]; });
      layer->register_full_backward_pre_hook(
          [outside](auto&, Tensors& grad_outputs) { grad_outputs[0] = grad_outputs[0] * outside; });
      layer->register_full_backward_hook([](auto& module, Tensors& grad_inputs, const Tensors& grad_outputs) {
        grad_inputs[0] = grad_inputs[0] + grad_outputs[0].mm(module.weight).cos();
      });
      net->push_back(layer);
      net->push_back(torch::nn::ReLU());
    }
    return net;
  };
  const at::Tensor outside = at::randn({3});
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto net = build(outside), eager = build(outside);
    auto compiled = compile(net, {.backend = backend, .fullgraph = true});
    for (const int rows : {4, 4, 5, 6}) {
      const at::Tensor x = at::randn({rows, 3}).requires_grad_(), same = x.detach().requires_grad_();
      const at::Tensor found = compiled(x), expected = eager->forward(same);
      EXPECT_THAT(found, BitEqual(expected)) << backend;
      found.square().sum().backward();
      expected.square().sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend;
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        EXPECT_THAT(net->parameters()[i].grad(), BitEqual(eager->parameters()[i].grad())) << backend << i;
      }
    }
    EXPECT_EQ(compiled.stats().compiles, 2) << backend;
    for (const auto& entry : compiled.explain().entries) {
      for (const auto& graph : entry.graphs) EXPECT_EQ(graph.eager_because, "") << backend;
    }
  }
}

// The function calls the hooked module twice and also uses its input directly. The gradients of the three uses add up
// after the hooks.
TEST(ModuleHooks, InAFunction) {
  const auto layer = hooked_linear();
  const at::Tensor calls = at::zeros({}, at::kLong);
  layer->register_full_backward_hook([calls](auto&, Tensors& grad_inputs, const Tensors&) {
    calls.add_(1);
    grad_inputs[0] = grad_inputs[0].sin();
  });
  const auto function = [&](const at::Tensor& x) {
    return layer->forward(x.exp()).sum() + layer->forward(x.cos()).square().sum() + x.sum();
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::randn({4, 3}).requires_grad_(), same = x.detach().requires_grad_();
      const auto before = calls.item<std::int64_t>();
      compiled(x).backward();
      EXPECT_EQ(calls.item<std::int64_t>(), before + 2) << backend;
      function(same).backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend << call;
    }
  }
}

// Two buckets. The code registers a hook on the first layer's result before it calls the second layer (`early`), or
// afterwards.
struct CutImpl : torch::nn::Module {
  explicit CutImpl(bool early) : early_(early) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto hook = [](const at::Tensor& gradient) { return gradient.sin(); };
    const at::Tensor y = first->forward(x);
    if (early_) y.register_hook(hook);
    const at::Tensor z = second->forward(y);
    if (!early_) y.register_hook(hook);
    return z.exp();
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(300, 300));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(300, 300));
  bool early_;
};
TORCH_MODULE(Cut);

TEST(TensorHooksUnderDdp, StayWithTheirTensor) {
  for (const bool early : {true, false}) {
    Cut net(early);
    fakes::FakeDDP<Cut> ddp(net, 0.3);
    auto compiled = compile(ddp, {.fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor x = at::randn({4, 300}).requires_grad_(), same = x.detach().requires_grad_();
      compiled(x).sum().backward();
      const at::Tensor found = net->first->weight.grad().clone();
      net->zero_grad();
      net->forward(same).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << early;
      EXPECT_THAT(found, BitEqual(net->first->weight.grad())) << early;
      net->zero_grad();
    }
    const auto entry = compiled.explain().entries.at(0);
    EXPECT_EQ(entry.graphs.size(), early ? 2 : 1);
    EXPECT_EQ(entry.split_warnings.empty(), early);
    for (const std::string& warning : entry.split_warnings) {
      EXPECT_THAT(warning, HasSubstr("a bucket would end between a tensor and its hook"));
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler
