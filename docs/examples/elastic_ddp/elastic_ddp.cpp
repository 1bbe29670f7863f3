// SPDX-License-Identifier: BSD-3-Clause
// A job that survives the loss of ranks. The remaining ranks, and those that restart, meet, resume from the last
// checkpoint, and go on. The scenario decides which ranks crash, when, and whether they come back.
#include "training.h"

#include <rehearse/job/program.h>

namespace {

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  const elastic_ddp::Job job{parameters.integer("steps"), parameters.integer("rows"), parameters.integer("save_every")};
  rehearse::elastic::Options options;
  options.rendezvous.min_ranks = static_cast<int>(parameters.integer("min_ranks"));
  options.max_restarts = static_cast<int>(parameters.integer("max_restarts"));
  const auto at_the_end = elastic_ddp::train(ctx, job, options);
  if (at_the_end.defined()) ctx.result("parameters", at_the_end);
}

REHEARSE_PROGRAM(elastic_ddp){
    .summary = "DistributedDataParallel that survives the loss of ranks",
    .parameters = {{"steps", std::int64_t{8}, "training steps", 1, 1e6},
                   {"rows", std::int64_t{12}, "rows of a step, for all ranks together", 1, 1e6},
                   {"save_every", std::int64_t{1}, "steps between checkpoints", 1, 1e6},
                   {"min_ranks", std::int64_t{0}, "go on with so many; 0: all must come back", 0, 1e4},
                   {"max_restarts", std::int64_t{3}, "rounds that a rank may lose", 0, 1e6}},
    .body = train};

}  // namespace
