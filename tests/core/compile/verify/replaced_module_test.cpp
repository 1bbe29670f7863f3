// SPDX-License-Identifier: BSD-3-Clause
// Modules, parameters and buffers that replace others after a capture.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

struct TwoPartsImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return second(first(x).relu()) + shift; }
  void put_second(torch::nn::Linear other) { second = replace_module("second", std::move(other)); }
  void put_weight(const at::Tensor& weight) {
    parameters_["gain"] = weight;
    gain = weight;
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 4));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(4, 4));
  at::Tensor gain = register_parameter("gain", at::ones({4}));
  at::Tensor shift = register_buffer("shift", at::zeros({4}));
};
TORCH_MODULE(TwoParts);

struct GainedImpl : TwoPartsImpl {
  at::Tensor forward(const at::Tensor& x) { return TwoPartsImpl::forward(x) * gain; }
};
TORCH_MODULE(Gained);

const at::Tensor kX = at::arange(8, at::kFloat).view({2, 4});

template <class Net, class Compiled>
void expect_eager(Net& net, Compiled& compiled) {
  const auto gradients = [&](const at::Tensor& result) {
    net->zero_grad();
    result.sum().backward();
    std::vector<at::Tensor> copies;
    for (const at::Tensor& parameter : net->parameters()) {
      copies.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    }
    return copies;
  };
  const at::Tensor expected = net->forward(kX), found = compiled(kX);
  EXPECT_THAT(found, BitEqual(expected));
  const auto mine = gradients(found), eager = gradients(expected);
  EXPECT_THAT(mine, BitEqual(eager));
}

TEST(ReplacedModule, AChildIsCompiledAnew) {
  for (const Verify verify : {Verify::Never, Verify::FirstHit, Verify::Always}) {
    TwoParts net;
    auto compiled = compile(net, {.verify = verify});
    const torch::nn::Linear before = net->second;
    for (int call = 0; call < 2; ++call) expect_eager(net, compiled);
    net->put_second(torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
    for (int call = 0; call < 2; ++call) expect_eager(net, compiled);
    EXPECT_EQ(compiled.stats().compiles, 2);
    const GuardFailure failure = compiled.explain().recompiles.at(0).failures.at(0);
    EXPECT_EQ(failure.source, "second");
    EXPECT_EQ(failure.expected, "the module at the capture");
    net->put_second(before);  // the first entry serves the next call
    expect_eager(net, compiled);
    EXPECT_EQ(compiled.stats().compiles, 2);
  }
}

TEST(ReplacedModule, AParameterIsCompiledAnew) {
  Gained net;
  auto compiled = compile(net, {.verify = Verify::Never});
  expect_eager(net, compiled);
  net->put_weight(at::full({4}, 3.0F).requires_grad_());
  expect_eager(net, compiled);
  EXPECT_EQ(compiled.stats().compiles, 2);
  EXPECT_EQ(compiled.explain().recompiles.at(0).failures.at(0).source, "gain");
}

TEST(ReplacedModule, WhatIsAddedCounts) {
  TwoParts net;
  auto compiled = compile(net, {.verify = Verify::Never});
  expect_eager(net, compiled);
  net->register_buffer("unused", at::ones({1}));
  expect_eager(net, compiled);
  EXPECT_EQ(compiled.stats().compiles, 2);
  const GuardFailure failure = compiled.explain().recompiles.at(0).failures.at(0);
  EXPECT_EQ(text_of(failure), "buffers: expected 1, found 2");
}

// If code replaces only the member, and not the registered module, the change is hidden state.
TEST(ReplacedModule, AHolderAloneIsFoundByVerifying) {
  TwoParts net;
  auto first_hit = compile(net);
  auto always = compile(net, {.verify = Verify::Always});
  first_hit(kX), always(kX);
  net->second = torch::nn::Linear(4, 4);
  EXPECT_THROW(first_hit(kX), StaleCapture);
  EXPECT_THAT(always(kX), BitEqual(net->forward(kX)));
}

}  // namespace
}  // namespace rehearse::compiler
