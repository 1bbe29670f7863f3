// SPDX-License-Identifier: BSD-3-Clause
// Contract: under the real Reducer, a compiled model with hooks on tensors and modules has the same outputs, gradients
// and parameters as eager DDP with the same hooks, bit for bit, and its hooks run equally often.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/module_hooks.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;
using HookedLinear = ModuleHooks<torch::nn::Linear>;

// Three layers. Hooks count their calls in a tensor, because a captured hook changes C++ variables only during the
// capture.
struct HookedImpl : torch::nn::Module {
  using Forward = at::Tensor (*)(HookedImpl& net, const at::Tensor& x);
  using SetUp = void (*)(HookedImpl& net);

  HookedImpl(SetUp set_up, Forward run) : run_(run) { set_up(*this); }
  at::Tensor forward(const at::Tensor& x) { return run_(*this, x); }

  void count(int hook) const { counts[hook].add_(1); }

  std::shared_ptr<HookedLinear> layer(const std::string& name, int inputs, int outputs) {
    return register_module(name, std::make_shared<HookedLinear>(torch::nn::Linear(inputs, outputs)));
  }
  std::shared_ptr<HookedLinear> first = layer("first", 8, 16);
  std::shared_ptr<HookedLinear> second = layer("second", 16, 16);
  std::shared_ptr<HookedLinear> third = layer("third", 16, 2);
  at::Tensor in_buffer = register_buffer("in_buffer", at::zeros({1}));
  const at::Tensor counts = at::zeros({6}, at::kLong);

 private:
  const Forward run_;
};
TORCH_MODULE(Hooked);

void no_hooks_of_modules(HookedImpl&) {}

at::Tensor three_layers(HookedImpl& net, const at::Tensor& x) {
  return net.third->forward(net.second->forward(net.first->forward(x).tanh()).tanh());
}

void hook_layer(const HookedImpl& net, HookedLinear& layer, int number) {
  layer.register_full_backward_pre_hook([&net, number](auto&, Tensors& grad_outputs) {
    net.count(number);
    grad_outputs[0] = (grad_outputs[0] * 1.2).sin();
  });
  layer.register_full_backward_hook([&net, number](auto& linear, Tensors& grad_inputs, const Tensors& grad_outputs) {
    net.count(number + 3);
    if (grad_inputs[0].defined()) grad_inputs[0] = grad_inputs[0] + grad_outputs[0].mean() * linear.bias.detach().sum();
  });
}
void hook_each_layer(HookedImpl& net) {
  hook_layer(net, *net.first, 0);
  hook_layer(net, *net.second, 1);
  hook_layer(net, *net.third, 2);
}

void hook_forwards(HookedImpl& net) {
  net.first->register_forward_pre_hook([](auto&, Tensors& inputs) { inputs[0] = inputs[0] * 1.5; });
  net.second->register_forward_hook([&net](auto&, const Tensors& inputs, Tensors& outputs) {
    outputs[0] = outputs[0] + inputs[0].sum(1, true);
    outputs[0].register_hook([&net](const at::Tensor& gradient) {
      net.count(0);
      return gradient * 0.7;
    });
  });
  hook_layer(net, *net.third, 1);
}

// Registers two hooks on one tensor, a hook that returns nothing, and a hook on a view.
at::Tensor with_tensor_hooks(HookedImpl& net, const at::Tensor& x) {
  const at::Tensor a = net.first->forward(x);
  a.register_hook([&net](const at::Tensor& gradient) {
    net.count(0);
    return gradient.sin();
  });
  a.register_hook([&net, above = a.detach() + 1](const at::Tensor& gradient) {
    net.count(1);
    return gradient * above;
  });
  const at::Tensor b = net.second->forward(a.tanh());
  b.register_hook([&net](const at::Tensor& gradient) -> void {
    net.count(2);
    net.in_buffer.add_(gradient.sum());
  });
  const at::Tensor half = b.narrow(1, 0, 8);
  half.register_hook([&net](const at::Tensor& gradient) {
    net.count(3);
    return gradient * 3;
  });
  return net.third->forward(at::cat({half, b.narrow(1, 8, 8)}, 1).tanh());
}

// Each hook uses a value of another layer than its own.
at::Tensor with_values_of_others(HookedImpl& net, const at::Tensor& x) {
  const at::Tensor a = net.first->forward(x).tanh();
  const at::Tensor b = net.second->forward(a).tanh();
  a.register_hook([&net, b](const at::Tensor& gradient) {
    net.count(0);
    return gradient * b.detach();
  });
  b.register_hook([&net, a](const at::Tensor& gradient) {
    net.count(1);
    return gradient + net.first->module().weight.detach().mean() * a.detach();
  });
  return net.third->forward(b);
}

at::Tensor with_hooked_result(HookedImpl& net, const at::Tensor& x) {
  const at::Tensor result = three_layers(net, x);
  result.register_hook([&net](const at::Tensor& gradient) {
    net.count(0);
    return gradient * 0.3;
  });
  return result;
}

// The second hook's tensor gets no gradient.
at::Tensor with_unused_value(HookedImpl& net, const at::Tensor& x) {
  const at::Tensor a = net.first->forward(x).tanh();
  const at::Tensor unused = a * 2;
  for (int i = 0; i < 2; ++i) {
    (i == 0 ? a : unused).register_hook([&net, i](const at::Tensor& gradient) {
      net.count(i);
      return gradient * 0.3;
    });
  }
  return net.third->forward(net.second->forward(a).tanh());
}

struct HookedForm {
  const char* name;
  HookedImpl::SetUp set_up;
  HookedImpl::Forward forward;
  std::vector<std::int64_t> calls;  // of each hook in a step
  int pieces;                       // after the split by buckets, which must keep a tensor and its hook together
};

const std::vector<HookedForm>& hooked_forms() {
  static const std::vector<HookedForm> all{
      {"hooks of modules", hook_each_layer, three_layers, {1, 1, 1, 1, 1, 1}, 1},
      {"hooks of forwards", hook_forwards, three_layers, {1, 1, 0, 0, 1, 0}, 2},
      {"hooks of tensors", no_hooks_of_modules, with_tensor_hooks, {1, 1, 1, 1, 0, 0}, 2},
      {"values of other layers", no_hooks_of_modules, with_values_of_others, {1, 1, 0, 0, 0, 0}, 1},
      {"a hooked result", no_hooks_of_modules, with_hooked_result, {1, 0, 0, 0, 0, 0}, 2},
      {"a value without gradient", no_hooks_of_modules, with_unused_value, {1, 0, 0, 0, 0, 0}, 2},
  };
  return all;
}

enum class Compiles { Whole, Split, InsideOfDdp };

struct HookedWay {
  const char* backend;
  Compiles compiles;
  DistributedDataParallelOptions ddp;
  std::string text;
};

std::vector<HookedWay> hooked_ways() {
  std::vector<HookedWay> all;
  for (const char* const backend : {"eager", "aot_eager"}) {
    for (const auto& [compiles, text] :
         {std::pair(Compiles::Whole, "whole"), {Compiles::Split, "split"}, {Compiles::InsideOfDdp, "inside of DDP"}}) {
      for (const std::string option : {"", "static_graph", "find_unused_parameters"}) {
        const DistributedDataParallelOptions ddp{.bucket_cap_mb = 0.0004,
                                                 .find_unused_parameters = option == "find_unused_parameters",
                                                 .static_graph = option == "static_graph"};
        all.push_back({backend, compiles, ddp, fmt::format("{}, {}, {}", backend, text, option)});
      }
    }
  }
  return all;
}

// Fills the parameters with values whose sums are rounded, so that adding them up in another order gives other bits.
void fill_with_sines(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  rehearse_test::fill(module);
  for (auto& parameter : module.parameters()) parameter.sin_();
}

struct WithHooks {
  Tensors outputs, gradients, counts, parameters;
};

constexpr int kHookedSteps = 4;

template <class Call>
WithHooks train(RankContext& ctx, HookedImpl& net, Call&& call) {
  WithHooks trained;
  for (int step = 0; step < kHookedSteps; ++step) {
    const at::Tensor x = rehearse_test::values({4, 8}, 2 * step + ctx.rank(), at::kFloat).sin();
    const at::Tensor y = call(x);
    trained.outputs.push_back(y.detach().clone());
    y.square().mean().backward();
    for (auto& each : rehearse_test::gradient_copies(net.parameters())) trained.gradients.push_back(std::move(each));
    trained.counts.push_back(net.counts.clone());
    trained.counts.push_back(net.in_buffer.clone());
    rehearse_test::descend(net.parameters(), 0.1);
    net.zero_grad();
  }
  trained.parameters = rehearse_test::copies(net.parameters());
  return trained;
}

WithHooks train_compiled(RankContext& ctx, const HookedForm& form, const HookedWay& way) {
  Hooked net(form.set_up, form.forward);
  fill_with_sines(*net);
  DistributedDataParallel ddp(net, ctx.group(), way.ddp);
  const CompileOptions options{
      .backend = way.backend, .fullgraph = true, .optimize_ddp = way.compiles != Compiles::Whole};
  if (way.compiles == Compiles::InsideOfDdp) {
    auto compiled = compile(net, options);
    return train(ctx, *net, [&](const at::Tensor& x) { return ddp.forward_with(compiled, x); });
  }
  auto compiled = compile(ddp, options);
  auto trained = train(ctx, *net, [&](const at::Tensor& x) { return compiled(x); });
  EXPECT_EQ(compiled.stats().graphs, way.compiles == Compiles::Whole ? 1 : form.pieces);
  EXPECT_EQ(compiled.stats().compiles, 1);
  return trained;
}

WithHooks train_eager(RankContext& ctx, const HookedForm& form, const HookedWay& way) {
  Hooked net(form.set_up, form.forward);
  fill_with_sines(*net);
  DistributedDataParallel ddp(net, ctx.group(), way.ddp);
  return train(ctx, *net, [&](const at::Tensor& x) { return ddp(x); });
}

TEST(DdpHooks, ResultsGradientsAndCalls_AreEagerDdps) {
  for (const auto& form : hooked_forms()) {
    for (const auto& way : hooked_ways()) {
      SCOPED_TRACE(std::string(form.name) + ": " + way.text);
      rehearse_test::run_ranks({.ranks = 2}, [&](RankContext& ctx) {
        const auto expected = train_eager(ctx, form, way), found = train_compiled(ctx, form, way);
        EXPECT_THAT(found.outputs, BitEqual(expected.outputs)) << "outputs";
        EXPECT_THAT(found.gradients, BitEqual(expected.gradients)) << "gradients";
        EXPECT_THAT(found.counts, BitEqual(expected.counts)) << "calls of hooks";
        EXPECT_THAT(found.parameters, BitEqual(expected.parameters)) << "parameters";
        const at::Tensor calls = at::tensor(form.calls) * kHookedSteps;
        EXPECT_THAT(expected.counts.at(2 * kHookedSteps - 2), BitEqual(calls));
      });
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler
