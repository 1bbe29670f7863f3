// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/seeds/bert_seed.h"

#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

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

// Runs forward and backward of `net`, with the random seed `number`. `module` owns the parameters of `net`. Resets the
// gradients of the parameters after it has collected them.
template <class Net>
TrainingStep step_of(Net& net, const torch::nn::Module& module, const BertSeed& seed, std::uint64_t number) {
  at::manual_seed(number);
  const auto ids = at::randint(seed.shape.vocabulary, {seed.texts, seed.words}, at::kLong);
  const auto labels = at::randint(seed.shape.vocabulary, {seed.texts, seed.words}, at::kLong);
  auto [loss, logits] = net(ids, labels);
  loss.backward();
  TrainingStep step{loss.detach(), logits.detach(), {}};
  for (at::Tensor& parameter : module.parameters()) {
    EXPECT_TRUE(parameter.grad().defined());
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

void expect_same_step(const TrainingStep& found, const TrainingStep& expected, const std::string& where) {
  EXPECT_THAT(found.loss, BitEqual(expected.loss)) << where;
  EXPECT_THAT(found.logits, BitEqual(expected.logits)) << where;
  EXPECT_THAT(found.gradients, BitEqual(expected.gradients)) << where;
}

// The random seed for one step of one rank.
std::uint64_t number_of(int rank, int step) { return 1337 + 100 * static_cast<std::uint64_t>(rank) + step; }

void damage_buffers(const torch::nn::Module& module) {
  for (at::Tensor& buffer : module.buffers()) buffer.zero_().add_(1);
}

// Runs all eager steps first, so that the eager reducer's buckets (440 MB at base size) are freed before the compiled
// steps start.
std::vector<TrainingStep> eager_steps(RankContext& ctx, BertWithLoss& net, const BertSeed& seed,
                                      const DistributedDataParallelOptions& options) {
  DistributedDataParallel eager(net, ctx.group(), options);
  std::vector<TrainingStep> steps;
  for (int step = 0; step < seed.steps; ++step) {
    if (step > 0 && ctx.rank() > 0) damage_buffers(*net);
    steps.push_back(step_of(eager, *net, seed, number_of(ctx.rank(), step)));
  }
  return steps;
}

}  // namespace

BertRun expect_bert_like_eager(const BertSeed& seed) {
  BertWithLoss net(seed.shape);
  const auto values = values_of(*net);
  fakes::FakeDDP<BertWithLoss> ddp(net, seed.bucket_cap_mb);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  Counts compiles;
  for (int step = 0; step < seed.steps; ++step) {
    const TrainingStep expected = step_of(net, *net, seed, number_of(0, step));
    expect_same_step(step_of(compiled, *net, seed, number_of(0, step)), expected, "step " + std::to_string(step));
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  EXPECT_THAT(values_of(*net), BitEqual(values));
  return {compiled.stats(), compiles};
}

BertRun expect_bert_like_eager_on_rank(RankContext& ctx, const BertSeed& seed) {
  const DistributedDataParallelOptions options{.bucket_cap_mb = seed.bucket_cap_mb, .static_graph = seed.static_graph};
  BertWithLoss net(seed.shape);
  const auto expected = eager_steps(ctx, net, seed, options);
  const auto values = values_of(*net);
  DistributedDataParallel ddp(net, ctx.group(), options);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true, .group = ctx.group()});
  Counts compiles;
  for (int step = 0; step < seed.steps; ++step) {
    if (step > 0 && ctx.rank() > 0) damage_buffers(*net);
    expect_same_step(step_of(compiled, *net, seed, number_of(ctx.rank(), step)),
                     expected[static_cast<std::size_t>(step)],
                     "rank " + std::to_string(ctx.rank()) + ", step " + std::to_string(step));
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  EXPECT_THAT(values_of(*net), BitEqual(values));
  return {compiled.stats(), compiles};
}

}  // namespace rehearse::compiler
