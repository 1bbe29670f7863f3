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
  CompileOptions compile = {.backend = "aot_eager"};  // always fullgraph
  int steps = 4;
};

// What compile() did in a training, in all and in each step.
struct Trained {
  CompileStats stats;
  Counts compiles;
};

// Trains Toy compiled, and beside it Toy as it is, both under the real Reducer. Outputs and gradients must be equal,
// bit for bit, in the first step (one bucket), in the second (buckets are rebuilt) and after.
Trained expect_toy_trains_like_eager(RankContext& ctx, const ToyTraining& training);

// Calls Toy in pieces, under the real Reducer: the result must be the module's, and there must be one reason for each
// of the graphs that the back end gets, each naming DDPOptimizer.
CompileStats expect_split_toy_like_eager(RankContext& ctx, const test::ToyShape& shape, double bucket_cap_mb);

}  // namespace rehearse::compiler
