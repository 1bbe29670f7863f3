// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/pooling.h>

#include <rehearse_internal/shapes/shape_env.h>

#include "bit_equal.h"
#include "models/attention.h"
#include "models/bert.h"
#include "models/custom.h"
#include "models/symbols.h"
#include "models/transformer.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

TEST(CaptureModels, Custom_HasDynamosElevenCallsAndOneInput) {
  rehearse::test::Custom custom(64);
  const auto x = at::randn({8, 64});
  const Function forward = [&](const Tensors& in) { return Tensors{custom->forward(in[0], in[0])}; };
  const auto captured = trace(forward, {x}, {{0, 0}}, named_tensors(*custom));
  EXPECT_EQ(targets(captured), (Names{"add.Tensor", kLinear, "relu.default", "t.default", "mm.default", "lt.Scalar",
                                      "where.Scalar", "add.Tensor", "relu.default", kLinear, "relu.default"}));
  EXPECT_EQ(placeholders(captured), (Names{"x0", "s0", "seq.0.linear.weight", "seq.0.linear.bias", "seq.2.weight",
                                           "seq.4.linear.weight", "seq.4.linear.bias"}));
  for (const std::int64_t batch : {8, 3})
    expect_same(captured, forward, {at::randn({batch, 64})}, custom->parameters());
}

TEST(CaptureModels, Custom_SameTensorTwice_IsOneInput) {
  rehearse::test::Custom custom(64);
  const auto x = at::randn({8, 64});
  const Function forward = [&](const Tensors& in) { return Tensors{custom->forward(in[0], in[1])}; };
  const auto captured = trace(forward, {x, x}, {}, named_tensors(*custom));
  EXPECT_EQ(placeholders(captured).size(), 6U);
  expect_same(captured, forward, {x, x}, custom->parameters());
}

TEST(CaptureModels, NormsAndAttention_AreReplayedAsCaptured) {
  rehearse::test::NormedAttention model(16, 4);
  const auto x = at::randn({2, 3, 5, 16});
  const auto captured = trace_module(model, x);
  EXPECT_TRUE(captured.remarks.empty());
  expect_same(captured, forward_of(model), {x}, model->parameters());
  expect_same(captured, forward_of(model), {at::randn({2, 3, 5, 16})}, model->parameters());
}

TEST(CaptureModels, NormsAndAttention_IntSizesAreFixedWithARemarkEach) {
  rehearse::test::NormedAttention model(16, 4);
  const auto captured = trace_module(model, at::randn({2, 3, 5, 16}), {{0, 0}});
  ASSERT_EQ(captured.remarks.size(), 1U);
  EXPECT_EQ(captured.remarks[0].message, "x0.size(0) is fixed (s0 == 2): C++ code read it as a plain number");
  EXPECT_EQ(captured.remarks[0].where.describe().find("TensorBase.h"), std::string::npos);
}

TEST(CaptureModels, Transformer_IsReplayedAtOtherBatchesAndLengths) {
  rehearse::test::Transformer model;
  const auto text = at::randint(50, {4, 16}, at::kLong);
  const auto captured = trace_module(model, text, {{0, 0}, {0, 1}});
  EXPECT_TRUE(captured.remarks.empty());
  ASSERT_EQ(captured.shapes->guards().size(), 1U) << captured.shapes->text();
  EXPECT_EQ(captured.shapes->guards()[0].condition.text(), "s1 <= 64");  // the model has 64 positions
  for (const auto& [batch, length] : {std::pair{4, 16}, {3, 9}, {2, 64}}) {
    expect_same(captured, forward_of(model), {at::randint(50, {batch, length}, at::kLong)}, model->parameters());
  }
}

TEST(CaptureModels, Bert_WithItsLossIsReplayedAtOtherBatchesAndLengths) {
  rehearse::test::BertForMaskedLM model(rehearse::test::BertShape::tiny());
  const Function function = [&](const Tensors& x) {
    const auto [loss, logits] = model->loss(x[0], x[1]);
    return Tensors{loss, logits};
  };
  const auto words = [](std::int64_t batch, std::int64_t length) {
    return at::randint(20, {batch, length}, at::kLong);
  };
  const auto captured =
      trace(function, {words(4, 16), words(4, 16)}, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, named_tensors(*model));
  EXPECT_TRUE(captured.remarks.empty());
  for (const auto& [batch, length] : {std::pair{4, 16}, {3, 9}}) {
    expect_same(captured, function, {words(batch, length), words(batch, length)}, model->parameters());
  }
}

TEST(CaptureModels, TwoLinearsOfThreeDimensions_AreTwoNodesAndNotFixed) {
  rehearse::test::TwoLinears model;
  const auto captured = trace_module(model, at::randn({3, 4, 768}), {{0, 1}});
  EXPECT_EQ(targets(captured), (Names{kLinear, kLinear}));
  EXPECT_TRUE(captured.remarks.empty());
  for (const std::int64_t length : {4, 7}) {
    expect_same(captured, forward_of(model), {at::randn({3, length, 768})}, model->parameters());
  }
}

TEST(CaptureModels, NoParametersAndNoInputs_DrawAnewInEachCall) {
  rehearse::test::RandomProduct model;
  const Function forward = [&](const Tensors&) { return Tensors{model->forward()}; };
  const auto captured = trace(forward, {});
  EXPECT_EQ(targets(captured), (Names{"randn.default", "randn.default", "mul.Tensor"}));
  expect_same(captured, forward, {});
}

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(8))),
        pool(register_module("pool", torch::nn::MaxPool2d(2))),
        head(register_module("head", torch::nn::Linear(8 * 4 * 4, 5))) {}
  at::Tensor forward(const at::Tensor& x) { return head(pool(at::relu(norm(conv(x)))).flatten(1)); }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::MaxPool2d pool;
  torch::nn::Linear head;
};
TORCH_MODULE(ConvNet);

TEST(CaptureModels, ConvNet_KeepsItsRunningStatistics) {
  ConvNet model, twin;
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < model->parameters().size(); ++i) twin->parameters()[i].copy_(model->parameters()[i]);
  const at::AutoGradMode grad(true);
  const auto x = at::randn({4, 3, 8, 8});
  const auto version = model->norm->num_batches_tracked._version();
  const auto captured = trace_module(model, x);
  EXPECT_EQ(model->norm->num_batches_tracked.item<std::int64_t>(), 0);
  EXPECT_EQ(model->norm->num_batches_tracked._version(), version);
  EXPECT_EQ(placeholders(captured).size(), 10U);  // x, 6 parameters, 3 buffers
  const Tensors expected = {twin->forward(x)};
  const Tensors actual = replay(captured, {x});
  EXPECT_THAT(actual[0], BitEqual(expected[0]));
  const auto of_twin = gradients(expected, twin->parameters()), of_model = gradients(actual, model->parameters());
  EXPECT_THAT(of_model, BitEqual(of_twin));
  EXPECT_EQ(model->norm->num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_THAT(model->norm->running_mean, BitEqual(twin->norm->running_mean));
  EXPECT_THAT(model->norm->running_var, BitEqual(twin->norm->running_var));
}

TEST(CaptureModels, ConvNetInEvaluation_IsReplayedAtOtherBatches) {
  ConvNet model;
  model->eval();
  const auto captured = trace_module(model, at::randn({4, 3, 8, 8}), {{0, 0}});
  for (const std::int64_t batch : {4, 7}) {
    expect_same(captured, forward_of(model), {at::randn({batch, 3, 8, 8})}, model->parameters());
  }
}

}  // namespace
}  // namespace rehearse::capture::test
