// SPDX-License-Identifier: BSD-3-Clause
// Seed tests of DistributedPatternTests: hooks of tensors and of modules in a compiled function.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/module_hooks.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

struct Holder {
  at::Tensor val;
};
template <class Visit>
void visit_fields(Holder& holder, Visit&& visit) {
  visit("val", holder.val);
}

using Hooked = at::Tensor (*)(const at::Tensor& x, const Holder& holder);

at::Tensor with_closure(const at::Tensor& x, const Holder& holder) {
  const at::Tensor y = x.sin();
  const at::Tensor above = y + 1;
  y.register_hook([holder, above](const at::Tensor& gradient) { return gradient + holder.val + above; });
  return y.sin();
}

at::Tensor with_nested_closure(const at::Tensor& x, const Holder& holder) {
  const auto hook_of = [&](const at::Tensor& y) {
    const at::Tensor above = y + 1;
    const auto with_value = [holder](const at::Tensor& gradient) { return gradient + holder.val; };
    return [with_value, above](const at::Tensor& gradient) { return with_value(gradient) + above; };
  };
  const at::Tensor y = x.sin();
  y.register_hook(hook_of(y));
  return y.sin();
}

struct Step {
  CompileStats stats;
  Counts counts;
};

// Compares two calls with eager mode. `holder.val` is 88 in the first call and 99 in the second one.
Step expect_like_eager(Hooked function, const char* backend) {
  auto compiled = compile(function, {.backend = backend, .fullgraph = true});
  Counts counts;
  for (const int value : {88, 99}) {
    const Holder holder{at::full({}, value, at::kFloat)};
    const at::Tensor x = at::ones({4}).requires_grad_(), same = at::ones({4}).requires_grad_();
    compiled(x, holder).sum().backward();
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    function(same, holder).sum().backward();
    EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend;
  }
  return {compiled.stats(), counts};
}

TEST_F(DistributedPatternTests, test_intermediate_hook_with_closure) {
  on_ranks([this](RankContext&) {
    expect_like_eager(&with_closure, "eager");
    const Step step = expect_like_eager(&with_closure, "aot_eager");
    expect_listed(step.stats, step.counts);
  });
}
TEST_F(DistributedPatternTests, test_intermediate_hook_with_nested_closure) {
  on_ranks([this](RankContext&) {
    expect_like_eager(&with_nested_closure, "eager");
    const Step step = expect_like_eager(&with_nested_closure, "aot_eager");
    expect_listed(step.stats, step.counts);
  });
}

using HookedLinear = ModuleHooks<torch::nn::Linear>;

// A layer of the seed tests, with a backward pre-hook and a backward hook. Each hook counts its calls in a tensor and
// in `on_host`. If the layer is compiled, `on_host` grows only when the code runs on fakes.
struct Layer {
  std::shared_ptr<HookedLinear> module;
  at::Tensor calls = at::zeros({2}, at::kLong);
  std::shared_ptr<int> on_host = std::make_shared<int>(0);
};

Layer make_layer() {
  torch::manual_seed(1234);
  Layer layer{std::make_shared<HookedLinear>(torch::nn::Linear(10, 10))};
  const auto count = [calls = layer.calls, on_host = layer.on_host](int which) {
    calls[which].add_(1);
    ++*on_host;
  };
  layer.module->register_full_backward_pre_hook([count](auto&, std::vector<at::Tensor>& grad_outputs) {
    count(0);
    grad_outputs[0] = (grad_outputs[0] + 1.2).sin();
  });
  layer.module->register_full_backward_hook(
      [count](auto&, std::vector<at::Tensor>& grad_inputs, const std::vector<at::Tensor>&) {
        count(1);
        grad_inputs[0] = (grad_inputs[0] + 3.4).sin();
      });
  return layer;
}

struct Net {
  std::vector<Layer> layers;
  torch::nn::Sequential module;

  explicit Net(int count) {
    for (int i = 0; i < count; ++i) {
      layers.push_back(make_layer());
      module->push_back(layers.back().module);
    }
  }
};

void expect_same(const at::Tensor& found, const at::Tensor& expected, const char* what) {
  EXPECT_THAT(found, BitEqual(expected)) << what;
}

// Trains for four steps, compiled and in eager mode. The gradients of the steps add up.
Step expect_trains_like_eager(const char* backend, int layers) {
  Net net(layers), eager(layers);
  auto compiled = compile(net.module, {.backend = backend, .fullgraph = true});
  const at::Tensor x = at::ones({4, 10}).requires_grad_(), same = at::ones({4, 10}).requires_grad_();
  Counts counts;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor out = compiled(x), expected = eager.module->forward(same);
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    expect_same(out, expected, "out");
    out.sum().backward();
    expected.sum().backward();
    expect_same(x.grad(), same.grad(), "inp.grad");
    for (int i = 0; i < layers; ++i) {
      const auto parameters = net.layers[i].module->named_parameters();
      const auto wanted = eager.layers[i].module->named_parameters();
      expect_same(parameters["module.weight"].grad(), wanted["module.weight"].grad(), "weight.grad");
      expect_same(parameters["module.bias"].grad(), wanted["module.bias"].grad(), "bias.grad");
      expect_same(net.layers[i].calls, eager.layers[i].calls, "calls of hooks");
      EXPECT_EQ(net.layers[i].calls[0].item<int>(), step + 1);
      EXPECT_EQ(*net.layers[i].on_host, step == 0 ? 2 : 4);  // at capture, and at verification in the second call
    }
  }
  EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).eager_because, "");  // hooks are in the backward graph
  return {compiled.stats(), counts};
}

TEST_F(DistributedPatternTests, test_module_backward_hooks_eager) {
  on_ranks([this](RankContext&) {
    const Step step = expect_trains_like_eager("eager", 1);
    expect_listed(step.stats, step.counts);
  });
}
TEST_F(DistributedPatternTests, test_module_backward_hooks_aot) {
  on_ranks([this](RankContext&) {
    const Step step = expect_trains_like_eager("aot_eager", 1);
    expect_listed(step.stats, step.counts);
  });
}
TEST_F(DistributedPatternTests, test_module_backward_hooks_inductor) {
  on_ranks([this](RankContext&) {
    const Step step = expect_trains_like_eager("aot_eager", 1);
    expect_listed(step.stats, step.counts);
  });
}
TEST_F(DistributedPatternTests, test_module_backward_hooks_multi_layers) {
  on_ranks([this](RankContext&) {
    const Step step = expect_trains_like_eager("aot_eager", 2);
    expect_listed(step.stats, step.counts);
  });
}

}  // namespace
}  // namespace rehearse::compiler
