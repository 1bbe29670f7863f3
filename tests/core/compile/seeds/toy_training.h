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

// The compilations of a training: the statistics of all, and the counts of each step.
struct Trained {
  CompileStats stats;
  Counts compiles;
};

// Trains Toy compiled, and beside it an eager Toy, both under the real Reducer. Outputs and gradients must be equal,
// bit for bit, in the first step (one bucket), in the second (buckets are rebuilt) and in later ones.
Trained expect_toy_trains_like_eager(RankContext& ctx, const ToyTraining& training);

// Calls Toy in pieces, under the real Reducer. The result must be the module's. Each graph of the back end must have
// one reason, which names DDPOptimizer.
CompileStats expect_split_toy_like_eager(RankContext& ctx, const test::ToyShape& shape, double bucket_cap_mb);

}  // namespace rehearse::compiler
