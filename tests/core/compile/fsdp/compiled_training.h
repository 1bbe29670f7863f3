// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/explanation.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace rehearse_test {

// A rank's results of several steps: outputs and gradients of each step, and its shards after the last one.
struct ShardedTraining {
  std::vector<at::Tensor> outputs, gradients, shards;
};

// Trains `fsdp` with these batches. `call(x)` runs its forward, compiled or in eager mode. The output may have any
// size; the loss is the sum of its squares.
template <class Fsdp, class Call>
ShardedTraining train_sharded(Fsdp& fsdp, Call&& call, const std::vector<at::Tensor>& batches) {
  ShardedTraining training;
  for (const at::Tensor& x : batches) {
    fsdp.zero_grad();
    const at::Tensor output = call(x);
    training.outputs.push_back(output.detach().clone());
    output.square().sum().backward();
    for (const auto& each : gradient_copies(fsdp.parameters())) training.gradients.push_back(each);
    descend(fsdp.parameters(), 1.0 / 1024);
  }
  training.shards = copies(fsdp.parameters());
  return training;
}

inline std::vector<at::Tensor> batches_of(int rank, int steps = 4) {
  std::vector<at::Tensor> batches;
  for (int step = 0; step < steps; ++step) batches.push_back(batch_of(rank, step));
  return batches;
}

inline void expect_same_training(const ShardedTraining& found, const ShardedTraining& expected) {
  EXPECT_THAT(found.outputs, rehearse::test::BitEqual(expected.outputs)) << "outputs";
  EXPECT_THAT(found.gradients, rehearse::test::BitEqual(expected.gradients)) << "gradients";
  EXPECT_THAT(found.shards, rehearse::test::BitEqual(expected.shards)) << "shards";
}

// Trains two models from `make` on these batches, one compiled and one in eager mode. Expects equal bits everywhere.
// Returns explain() of the compiled model.
template <class Make>
rehearse::compiler::Explanation expect_trains_like_eager(rehearse::RankContext& ctx, Make&& make,
                                                         const rehearse::FullyShardedOptions& sharded,
                                                         const rehearse::CompileOptions& options,
                                                         const std::vector<at::Tensor>& batches) {
  auto net = make(), reference = make();
  fill(*net);
  fill(*reference);
  rehearse::FullyShardedDataParallel fsdp(net, ctx.group(), sharded), eager(reference, ctx.group(), sharded);
  auto compiled = rehearse::compile(fsdp, options);
  const auto expected = train_sharded(eager, [&](const at::Tensor& x) { return eager(x); }, batches);
  const auto found = train_sharded(fsdp, [&](const at::Tensor& x) { return compiled(x); }, batches);
  expect_same_training(found, expected);
  return compiled.explain();
}

}  // namespace rehearse_test
