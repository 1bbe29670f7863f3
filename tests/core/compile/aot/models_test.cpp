// SPDX-License-Identifier: BSD-3-Clause
// Whole models that compile() compiles with aot_eager, as one graph and in pieces. Results, gradients and buffers have
// eager's bits, at the sizes of the capture and at other sizes.
#include <functional>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "models/attention.h"
#include "models/bert.h"
#include "models/custom.h"
#include "models/toy.h"
#include "models/transformer.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;

Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.defined() ? tensor.detach().clone() : at::Tensor());
  return copies;
}

// The results of one training step. train() leaves the module with its old buffers and without gradients.
struct TrainingStep {
  at::Tensor output;
  Tensors gradients, buffers;
};

TrainingStep train(torch::nn::Module& module, const std::function<at::Tensor()>& forward) {
  TrainingStep step;
  const Tensors before = copies_of(module.buffers());
  at::manual_seed(11);
  step.output = forward();
  const at::Tensor tangent = at::arange(step.output.numel(), at::kDouble).mul(0.37).sin().view(step.output.sizes());
  step.output.backward(tangent.to(step.output.scalar_type()));
  step.buffers = copies_of(module.buffers());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < before.size(); ++i) module.buffers()[i].copy_(before[i]);
  for (at::Tensor& parameter : module.parameters()) {
    step.gradients.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
  return step;
}

void expect_same(const Tensors& mine, const Tensors& eager, const char* what) {
  EXPECT_THAT(mine, BitEqual(eager)) << what;
}

template <class Net, class Compiled, class... Inputs>
void expect_like_eager(Net& net, Compiled& compiled, const Inputs&... inputs) {
  const TrainingStep eager = train(*net, [&] { return net->forward(inputs...); });
  const TrainingStep mine = train(*net, [&] { return compiled(inputs...); });
  ASSERT_EQ(mine.output.sizes(), eager.output.sizes());
  EXPECT_THAT(mine.output, BitEqual(eager.output));
  expect_same(mine.gradients, eager.gradients, "gradient");
  expect_same(mine.buffers, eager.buffers, "buffer");
}

struct MlpImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return last(dropout(at::gelu(first(x)))); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 16));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.3));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 4));
};
TORCH_MODULE(Mlp);

TEST(AotEagerModels, MlpWithDropout) {
  Mlp net;
  auto compiled = compile(net, {.backend = "aot_eager"});
  for (const std::int64_t rows : {4, 7, 2, 31}) expect_like_eager(net, compiled, at::randn({rows, 6}));
  EXPECT_EQ(compiled.stats().compiles, 2);  // one for 4 rows, one for any number
}

TEST(AotEagerModels, MlpOnBatchesOfAnyShape) {
  Mlp net;
  auto compiled = compile(net, {.backend = "aot_eager", .dynamic = true});
  for (const std::int64_t rows : {4, 7, 2}) expect_like_eager(net, compiled, at::randn({rows, 3 + rows, 6}));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(AotEagerModels, ToyInPieces) {
  test::Toy net(test::ToyShape{.hidden = 300});
  fakes::FakeDDP ddp(net, 0.3);
  auto compiled = compile(ddp, {.backend = "aot_eager"});
  for (const std::int64_t rows : {20, 3, 9}) expect_like_eager(net, compiled, at::randn({rows, 10}));
  EXPECT_EQ(compiled.stats().compiles, 2);
  EXPECT_EQ(compiled.stats().graphs, 6);
}

TEST(AotEagerModels, CustomInPieces) {
  test::Custom net(64);
  fakes::FakeDDP ddp(net, 0.01);
  auto compiled = compile(ddp, {.backend = "aot_eager"});
  for (const std::int64_t rows : {5, 8, 2})
    expect_like_eager(net, compiled, at::randn({rows, 64}), at::randn({rows, 64}));
  EXPECT_EQ(compiled.stats().compiles, 2);
  EXPECT_EQ(compiled.stats().graphs, 6);
}

// The model uses its sizes as plain integers, so each size has a graph of its own.
TEST(AotEagerModels, LayerNormAndMultiheadAttention) {
  test::NormedAttention net(12, 3, 2);
  auto compiled = compile(net, {.backend = "aot_eager", .fullgraph = true});
  for (const std::int64_t time : {3, 5}) expect_like_eager(net, compiled, at::randn({2, 2, time, 12}));
}

TEST(AotEagerModels, TransformerWithSymbolicBatchAndLength) {
  test::Transformer net;
  auto compiled = compile(net, {.backend = "aot_eager", .dynamic = true, .fullgraph = true});
  for (const auto& [batch, length] : {std::pair{3, 8}, std::pair{2, 5}, std::pair{5, 11}}) {
    expect_like_eager(net, compiled, at::randint(50, {batch, length}));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(AotEagerModels, BertInPieces) {
  test::BertForMaskedLM net(test::BertShape::tiny());
  fakes::FakeDDP ddp(net, 0.05);
  auto compiled = compile(ddp, {.backend = "aot_eager", .dynamic = true, .fullgraph = true});
  for (const auto& [batch, length] : {std::pair{4, 16}, std::pair{3, 9}}) {
    expect_like_eager(net, compiled, at::randint(20, {batch, length}));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, 7);
}

struct ConvNetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return last(at::max_pool2d(norm(conv(x)).relu_(), 2).flatten(1)); }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(4));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(36, 5));
};
TORCH_MODULE(ConvNet);

TEST(AotEagerModels, ConvolutionAndBatchNorm) {
  ConvNet net;
  auto compiled = compile(net, {.backend = "aot_eager", .fullgraph = true});
  for (const std::int64_t rows : {2, 5}) expect_like_eager(net, compiled, at::randn({rows, 3, 6, 6}));
  net->eval();
  expect_like_eager(net, compiled, at::randn({2, 3, 6, 6}));
}

}  // namespace
}  // namespace rehearse::compiler
