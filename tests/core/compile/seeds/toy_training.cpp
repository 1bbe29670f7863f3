// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/seeds/toy_training.h"

#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

std::vector<at::Tensor> taken_gradients(torch::nn::Module& module) {
  std::vector<at::Tensor> gradients;
  for (auto& parameter : module.parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

void copy_parameters(const torch::nn::Module& from, torch::nn::Module& into) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < from.parameters().size(); ++i) into.parameters()[i].copy_(from.parameters()[i]);
}

}  // namespace

Trained expect_toy_trains_like_eager(RankContext& ctx, const ToyTraining& training) {
  at::manual_seed(1);
  test::Toy net(training.shape), reference(training.shape);
  copy_parameters(*net, *reference);
  DistributedDataParallel ddp(net, ctx.group(), training.ddp), eager(reference, ctx.group(), training.ddp);
  CompileOptions options = training.compile;
  options.fullgraph = true;
  auto compiled = compile(ddp, options);
  Trained trained;
  for (int step = 0; step < training.steps; ++step) {
    const at::Tensor x = at::rand({20, training.shape.in}) * (ctx.rank() + 1);
    const at::Tensor found = compiled(x), expected = eager(x);
    trained.compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_THAT(found, BitEqual(expected)) << "step " << step;
    found.sum().backward();
    expected.sum().backward();
    const auto gradients = taken_gradients(*net), wanted = taken_gradients(*reference);
    EXPECT_THAT(gradients, BitEqual(wanted)) << step;
  }
  trained.stats = compiled.stats();
  return trained;
}

CompileStats expect_split_toy_like_eager(RankContext& ctx, const test::ToyShape& shape, double bucket_cap_mb) {
  test::Toy net(shape);
  const auto counting = std::make_shared<CountingBackend>();
  DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = bucket_cap_mb});
  auto compiled = compile(ddp, {.backend = counting});
  const at::Tensor x = at::rand({20, shape.in}) * (ctx.rank() + 1);
  EXPECT_THAT(compiled(x), BitEqual(net->forward(x)));
  const Explanation told = compiled.explain();
  EXPECT_EQ(static_cast<std::int64_t>(counting->graphs()), told.stats.graphs);
  EXPECT_EQ(told.break_reasons().size(), counting->graphs());
  EXPECT_THAT(told.break_reasons(), ::testing::Each(::testing::HasSubstr("DDPOptimizer")));
  return told.stats;
}

}  // namespace rehearse::compiler
