// SPDX-License-Identifier: BSD-3-Clause
// A refused function runs again, in eager mode. Whatever modes the first run has switched, the second run must start
// with the modes of the call.
#include <memory>
#include <sstream>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>

#include "bit_equal.h"

namespace rehearse::compiler::refused_modes_test {
namespace {

using rehearse::test::BitEqual;

struct Mode {
  const char* name;
  bool (*is_on)();
  void (*set)(bool on);
};

at::Context& context() { return at::globalContext(); }

const Mode kModes[] = {
    {"grad mode", at::GradMode::is_enabled, at::GradMode::set_enabled},
    {"autocast", [] { return at::autocast::is_autocast_enabled(at::kCPU); },
     [](bool on) { at::autocast::set_autocast_enabled(at::kCPU, on); }},
    {"autocast's dtype", [] { return at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf; },
     [](bool on) { at::autocast::set_autocast_dtype(at::kCPU, on ? at::kHalf : at::kBFloat16); }},
    {"autocast's cache", at::autocast::is_autocast_cache_enabled, at::autocast::set_autocast_cache_enabled},
    {"deterministic algorithms", [] { return context().deterministicAlgorithms(); },
     [](bool on) { context().setDeterministicAlgorithms(on, on); }},
    {"flash attention", [] { return context().userEnabledFlashSDP(); }, [](bool on) { context().setSDPUseFlash(on); }},
    {"efficient attention", [] { return context().userEnabledMemEfficientSDP(); },
     [](bool on) { context().setSDPUseMemEfficient(on); }},
    {"attention by math", [] { return context().userEnabledMathSDP(); }, [](bool on) { context().setSDPUseMath(on); }},
    {"cuDNN's attention", [] { return context().userEnabledCuDNNSDP(); },
     [](bool on) { context().setSDPUseCuDNN(on); }},
    {"default dtype", [] { return c10::get_default_dtype_as_scalartype() == at::kDouble; },
     [](bool on) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(on ? at::kDouble : at::kFloat)); }},
};

// The code has switched a mode when it does what no graph can hold, and would switch it back after that.
TEST(RefusedModes, ASecondRunStartsWithTheModesOfTheCall) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    const bool before = mode.is_on();
    std::vector<bool> at_start;
    auto compiled = compile([&](const at::Tensor& x) {
      at_start.push_back(mode.is_on());
      mode.set(!mode.is_on());
      const at::Tensor y = x * 2;
      const float first = *y.data_ptr<float>();
      mode.set(!mode.is_on());
      return y + first;
    });
    EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 4.F)));
    EXPECT_EQ(at_start, std::vector<bool>(2, before));
    EXPECT_EQ(mode.is_on(), before);
    mode.set(before);
  }
}

// The code leaves a mode switched, which is why it is refused.
TEST(RefusedModes, ASwitchThatStaysHappensOnce) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    const bool before = mode.is_on();
    const auto function = [&](const at::Tensor& x) {
      const bool found = mode.is_on();
      mode.set(!found);
      return x * (found == before ? 2 : 3);
    };
    auto compiled = compile(function);
    for (const double factor : {2, 3, 2}) {
      EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::ones({2}) * factor));
      EXPECT_EQ(mode.is_on(), (factor == 2) != before);
    }
    EXPECT_NE(compiled.explain().refusal, "");
    mode.set(before);
  }
}

// No node switches these modes, so the graph would run the operator in the modes of the caller.
TEST(RefusedModes, AProcessModeForAWhile) {
  for (const Mode& mode : kModes) {
    const std::string name = mode.name;
    if (name.find("autocast") != std::string::npos || name == "grad mode") continue;
    SCOPED_TRACE(name);
    const auto function = [&](const at::Tensor& x) {
      const at::Tensor before = x * 2;
      mode.set(!mode.is_on());
      const at::Tensor y = at::scaled_dot_product_attention(before, x, x);
      mode.set(!mode.is_on());
      return y;
    };
    auto compiled = compile(function);
    const at::Tensor x = at::rand({1, 2, 8, 8});
    for (int again = 0; again < 2; ++again) EXPECT_THAT(compiled(x), BitEqual(function(x)));
    EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("refused_modes_test.cpp:"));
  }
}

torch::nn::Sequential network() {
  at::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(3, 3), torch::nn::BatchNorm1d(3));
}

// Runs `function` compiled with one network, and in eager mode with a twin. Results, statistics and modes must be
// equal.
void expect_like_eager(at::Tensor (*function)(torch::nn::Sequential& net, const at::Tensor& x)) {
  torch::nn::Sequential net = network(), twin = network();
  auto compiled = compile([&](const at::Tensor& x) { return function(net, x); });
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::arange(12, at::kFloat).view({4, 3}) * (call + 1);
    const at::Tensor found = compiled(x), expected = function(twin, x);
    EXPECT_THAT(found, BitEqual(expected)) << "call " << call;
    EXPECT_THAT(net->named_buffers()["1.running_mean"], BitEqual(twin->named_buffers()["1.running_mean"]));
    EXPECT_THAT(net->named_buffers()["1.num_batches_tracked"],
                BitEqual(twin->named_buffers()["1.num_batches_tracked"]));
    EXPECT_EQ(net->is_training(), twin->is_training());
    EXPECT_EQ(net[1]->is_training(), twin[1]->is_training());
  }
  EXPECT_NE(compiled.explain().refusal, "");
}

TEST(RefusedModes, OfModules) {
  expect_like_eager([](torch::nn::Sequential& net, const at::Tensor& x) {
    const at::Tensor y = net->forward(x);
    net->eval();
    const at::Tensor z = net->forward(x);
    std::ostringstream text;
    text << z;
    net->train();
    return y + z;
  });
  expect_like_eager([](torch::nn::Sequential& net, const at::Tensor& x) {
    const at::Tensor y = net->forward(x);
    net->eval();
    return y;
  });
  expect_like_eager([](torch::nn::Sequential& net, const at::Tensor& x) {
    net[1]->eval();
    net->eval();
    const at::Tensor z = net->forward(x);
    const float first = *z.detach().data_ptr<float>();
    net->train();
    net[1]->eval();
    return z * first;
  });
}

TEST(RefusedModes, OfASubmoduleOfACompiledModule) {
  struct Net : torch::nn::Module {
    Net() : inner(register_module("inner", network())) {}
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor y = inner->forward(x);
      inner->eval();
      return y;
    }
    torch::nn::Sequential inner;
  };
  auto net = std::make_shared<Net>(), twin = std::make_shared<Net>();
  auto compiled = compile(net);
  const at::Tensor x = at::arange(12, at::kFloat).view({4, 3});
  for (int call = 0; call < 3; ++call) {
    EXPECT_THAT(compiled(x), BitEqual(twin->forward(x))) << "call " << call;
    EXPECT_FALSE(net->inner->is_training());
  }
}

// Modules that the code makes itself are gone when it runs again.
TEST(RefusedModes, OfModulesThatTheCodeMakes) {
  auto compiled = compile([](const at::Tensor& x) {
    torch::nn::Dropout held(0.5);
    held->eval();
    torch::nn::DropoutImpl local(0.5);
    local.eval();
    const at::Tensor y = local.forward(held->forward(x));
    return y * *y.data_ptr<float>();
  });
  EXPECT_THAT(compiled(at::ones({8})), BitEqual(at::ones({8})));
}

// Nothing tells whether a module that no shared_ptr owns still lives, so it cannot be switched back.
TEST(RefusedModes, OfAModuleWithoutAnOwner) {
  const auto dropout = std::make_unique<torch::nn::DropoutImpl>(0.5);
  auto compiled = compile([&](const at::Tensor& x) {
    dropout->eval();
    const at::Tensor y = dropout->forward(x);
    const float first = *y.data_ptr<float>();
    dropout->train();
    return y * first;
  });
  EXPECT_THAT([&] { compiled(at::ones({8})); },
              testing::ThrowsMessage<CompileError>(testing::HasSubstr("DropoutImpl")));
  dropout->train();
  EXPECT_THAT(compiled(at::ones({8})), BitEqual(at::ones({8})));
  EXPECT_TRUE(dropout->is_training());
}

// StaleCapture ends a call between the switches.
TEST(RefusedModes, OfAStaleCapture) {
  auto net = network();
  double factor = 2;
  auto compiled = compile([&](const at::Tensor& x) {
    net->eval();
    const at::Tensor y = net->forward(x * factor);
    const double sum = y.sum().item<double>();
    net->train();
    return y * sum;
  });
  compiled(at::ones({4, 3}));
  factor = 3;
  EXPECT_THROW(compiled(at::ones({4, 3})), StaleCapture);
  EXPECT_TRUE(net->is_training());
  EXPECT_TRUE(net[1]->is_training());
}

}  // namespace
}  // namespace rehearse::compiler::refused_modes_test
