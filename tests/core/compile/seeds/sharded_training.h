// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/parallel/fsdp.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_run.h"

namespace rehearse::compiler {

struct ShardedTraining {
  FullyShardedOptions fsdp = {};
  CompileOptions compile = {.backend = "aot_eager"};  // fullgraph is always on
  int steps = 3;
};

// The compilations of a training: explain() after the last step, and the number of compilations in each step.
struct TrainedShards {
  Explanation told;
  Counts compiles;
};

// Changes this rank's shards by a step against their gradients. Returns the gradients.
inline std::vector<at::Tensor> descend(const std::vector<at::Tensor>& shards) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& shard : shards) {
    gradients.push_back(shard.grad());
    if (shard.grad().defined()) shard.add_(shard.grad(), -1e-3);
  }
  return gradients;
}

// Trains two equal models from `make`, both sharded: one compiled, the other in eager mode. In each step, outputs,
// gradients of shards and shards must be equal, bit for bit. The first output must be that of the module without
// sharding. `input(step)` returns a batch.
template <class Make, class Input>
TrainedShards expect_sharded_like_eager(RankContext& ctx, Make&& make, const ShardedTraining& training, Input&& input) {
  const auto seeded = [&] {
    at::manual_seed(1);
    return make();
  };
  auto net = seeded(), reference = seeded(), alone = seeded();
  FullyShardedDataParallel fsdp(net, ctx.group(), training.fsdp), eager(reference, ctx.group(), training.fsdp);
  CompileOptions options = training.compile;
  options.fullgraph = true;
  auto compiled = compile(fsdp, options);
  Counts compiles;
  for (int step = 0; step < training.steps; ++step) {
    const std::string where = "step " + std::to_string(step) + ", ";
    const at::Tensor x = input(step);
    fsdp.zero_grad();
    eager.zero_grad();
    const at::Tensor found = compiled(x), expected = eager(x);
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_THAT(found, rehearse::test::BitEqual(expected)) << where;
    if (step == 0) {
      EXPECT_THAT(found, rehearse::test::BitEqual(alone->forward(x))) << "the module by itself";
    }
    found.square().sum().backward();
    expected.square().sum().backward();
    EXPECT_THAT(descend(fsdp.parameters()), rehearse::test::BitEqual(descend(eager.parameters())))
        << where + "gradients";
    EXPECT_THAT(fsdp.parameters(), rehearse::test::BitEqual(eager.parameters())) << where + "shards";
  }
  return {compiled.explain(), compiles};
}

// Random batches that differ between ranks and between steps.
inline auto random_input(RankContext& ctx, std::vector<std::int64_t> sizes) {
  return [&ctx, sizes = std::move(sizes)](int step) {
    at::manual_seed(100 + 10 * static_cast<std::uint64_t>(ctx.rank()) + static_cast<std::uint64_t>(step));
    return at::rand(sizes);
  };
}

}  // namespace rehearse::compiler
