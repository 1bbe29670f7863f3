// SPDX-License-Identifier: BSD-3-Clause
#include "bert_seed.h"

#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>

namespace rehearse::compiler {
namespace {

struct BertWithLossImpl : torch::nn::Module {
  explicit BertWithLossImpl(const test::BertShape& shape)
      : model(register_module("model", test::BertForMaskedLM(shape))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& ids, const at::Tensor& labels) {
    return model->loss(ids, labels);
  }

  test::BertForMaskedLM model;
};
TORCH_MODULE(BertWithLoss);

struct TrainingStep {
  at::Tensor loss, logits;
  std::vector<at::Tensor> gradients;
};

// Forward and backward from a fixed seed; takes the gradients away from the parameters.
template <class Net>
TrainingStep step_of(Net& net, const torch::nn::Module& module, const at::Tensor& ids) {
  at::manual_seed(1337);
  auto [loss, logits] = net(ids, ids);
  loss.backward();
  TrainingStep step{loss.detach(), logits.detach(), {}};
  for (at::Tensor& parameter : module.parameters()) {
    step.gradients.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
  return step;
}

std::vector<at::Tensor> values_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& parameter : module.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

void expect_same_tensors(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(expected[i].defined() && found[i].defined()) << i;
    EXPECT_TRUE(found[i].equal(expected[i])) << i;
  }
}

}  // namespace

void expect_bert_like_eager(const test::BertShape& shape, const at::Tensor& ids, double bucket_cap_mb,
                            std::int64_t pieces) {
  BertWithLoss net(shape);
  const auto values = values_of(*net);
  const TrainingStep expected = step_of(net, *net, ids);
  fakes::FakeDDP<BertWithLoss> ddp(net, bucket_cap_mb);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  const TrainingStep found = step_of(compiled, *net, ids);
  EXPECT_TRUE(found.loss.equal(expected.loss));
  EXPECT_TRUE(found.logits.equal(expected.logits));
  expect_same_tensors(found.gradients, expected.gradients);
  expect_same_tensors(values_of(*net), values);
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, pieces);
}

}  // namespace rehearse::compiler
