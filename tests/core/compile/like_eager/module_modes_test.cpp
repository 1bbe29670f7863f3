// SPDX-License-Identifier: BSD-3-Clause
// Functions that find modules outside their arguments. Between calls, the modules switch to train() or eval().
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::module_modes_test {
namespace {

using rehearse::test::BitEqual;

torch::nn::Sequential network() {
  at::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(3, 3), torch::nn::BatchNorm1d(3), torch::nn::Dropout(0.5));
}

// Calls `mine` compiled and `twin` in eager mode, and switches the modes of their modules after every second call.
// Results and next random numbers must be equal. Expects one compilation for each mode.
template <class Function, class Switch>
void expect_like_eager(Function mine, Function twin, Switch switch_modes) {
  auto compiled = compile(mine);
  for (int call = 0; call < 8; ++call) {
    switch_modes(call % 4 < 2);
    const at::Tensor x = at::arange(12, at::kFloat).view({4, 3}) + call;
    at::manual_seed(7 + static_cast<std::uint64_t>(call));
    const at::Tensor found = compiled(x), drawn = at::rand({2});
    at::manual_seed(7 + static_cast<std::uint64_t>(call));
    EXPECT_THAT(found, BitEqual(twin(x))) << "call " << call;
    EXPECT_THAT(drawn, BitEqual(at::rand({2}))) << "call " << call;
  }
  EXPECT_EQ(compiled.stats().compiles, 2) << compiled.explain().text();
  EXPECT_EQ(compiled.stats().eager_calls, 0);
}

TEST(ModuleModes, OfAHolder) {
  auto net = network(), other = network();
  const auto function = [](torch::nn::Sequential held) {
    return [held](const at::Tensor& x) mutable { return held->forward(x) * 2; };
  };
  expect_like_eager(function(net), function(other), [&](bool trains) {
    net->train(trains);
    other->train(trains);
  });
}

TEST(ModuleModes, OfAVectorOfModules) {
  std::vector<torch::nn::Sequential> nets = {network(), network()}, others = {network(), network()};
  const auto function = [](std::vector<torch::nn::Sequential>& all) {
    return [&all](const at::Tensor& x) { return all[1]->forward(all[0]->forward(x)); };
  };
  expect_like_eager(function(nets), function(others), [&](bool trains) {
    for (auto* all : {&nets, &others}) trains ? (*all)[1]->train() : (*all)[1]->eval();
  });
}

TEST(ModuleModes, OfAnAnyModule) {
  auto dropout = std::make_shared<torch::nn::DropoutImpl>(0.5);
  const torch::nn::AnyModule held(dropout);
  const auto function = [&](const at::Tensor& x) {
    torch::nn::AnyModule copy = held;
    return copy.forward<at::Tensor>(x);
  };
  expect_like_eager(function, function, [&](bool trains) { dropout->train(trains); });
}

TEST(ModuleModes, OfAChildAlone) {
  struct Outer : torch::nn::Module {
    Outer() : inner(register_module("inner", network())) {}
    torch::nn::Sequential inner;
  };
  auto mine = std::make_shared<Outer>(), other = std::make_shared<Outer>();
  const auto function = [](std::shared_ptr<Outer> outer) {
    return [outer](const at::Tensor& x) { return outer->inner->forward(x); };
  };
  expect_like_eager(function(mine), function(other), [&](bool trains) {
    for (const auto& each : {mine, other}) each->inner->children()[1]->train(trains);
  });
}

// train() and eval() switch all submodules, as in LibTorch. If modules are back in the mode of the capture, the
// existing entry serves the call.
TEST(ModuleModes, TrainDoesWhatItDoes) {
  auto net = network();
  net->eval();
  for (const auto& module : net->modules()) EXPECT_FALSE(module->is_training());
  net->train();
  for (const auto& module : net->modules()) EXPECT_TRUE(module->is_training());
  auto compiled = compile([net](const at::Tensor& x) mutable { return net->forward(x); });
  compiled(at::ones({4, 3}));
  net->train();
  net->eval();
  net->train();
  compiled(at::ones({4, 3}));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// The function switches modes itself, which no graph can repeat.
TEST(ModuleModes, SwitchedInside) {
  auto net = network(), other = network();
  const auto function = [](torch::nn::Sequential held) {
    return [held](const at::Tensor& x) mutable {
      held->train(!held->is_training());
      return held->forward(x);
    };
  };
  auto compiled = compile(function(net));
  auto eager = function(other);
  for (int call = 0; call < 3; ++call) {
    at::manual_seed(1);
    const at::Tensor found = compiled(at::ones({4, 3}));
    at::manual_seed(1);
    eager(at::ones({4, 3}));
  }
  EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("train() and eval() of modules"));
  EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("(last: torch::nn::SequentialImpl to eval())"));
}

// Guards also compare the settings by which LibTorch chooses kernels, and whether a tensor is a wrapped number.
TEST(ModuleModes, OtherFactsAreGuarded) {
  const auto attention = [](const at::Tensor& x) { return at::scaled_dot_product_attention(x, x, x); };
  auto compiled = compile(attention);
  const at::Tensor x = at::randn({1, 1, 4, 8});
  compiled(x);
  at::globalContext().setSDPUseFlash(false);
  EXPECT_THAT(compiled(x), BitEqual(attention(x)));
  at::globalContext().setSDPUseFlash(true);
  EXPECT_EQ(compiled.stats().compiles, 2);

  const auto sum = [](const at::Tensor& a, const at::Tensor& b) { return a + b; };
  auto compiled_sum = compile(sum);
  const at::Tensor half = at::ones({2}, at::kHalf), plain = at::ones({}, at::kDouble);
  at::Tensor wrapped = at::ones({}, at::kDouble);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  for (const at::Tensor& number : {plain, wrapped, plain}) {
    EXPECT_EQ(compiled_sum(half, number).scalar_type(), sum(half, number).scalar_type());
  }
}

}  // namespace
}  // namespace rehearse::compiler::module_modes_test
