// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/ddp_options.h>

#include "core/compile/seeds/seed_run.h"
#include "models/toy.h"

namespace rehearse::compiler {

struct ToyTraining {
  test::ToyShape shape = {.hidden = 300};
  DistributedDataParallelOptions ddp = {.bucket_cap_mb = 0.3};
  CompileOptions compile = {.backend = "aot_eager"};  // fullgraph is always on
  int steps = 4;
};

// The compilations of a training: the statistics after the last step, and the number of compilations in each step.
struct Trained {
  CompileStats stats;
  Counts compiles;
};

// Runs the steps of two equal Toys under the real Reducer, one compiled and the other in eager mode. Outputs and
// gradients must be equal, bit for bit, in each step. By default, the first step has one bucket, and the second step
// rebuilds the buckets.
Trained expect_toy_trains_like_eager(RankContext& ctx, const ToyTraining& training);

// Calls a Toy once, compiled in pieces under the real Reducer. The result must be that of eager mode. For each graph,
// explain() must give one reason, which names DDPOptimizer.
CompileStats expect_split_toy_like_eager(RankContext& ctx, const test::ToyShape& shape, double bucket_cap_mb);

}  // namespace rehearse::compiler
