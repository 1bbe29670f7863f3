// SPDX-License-Identifier: BSD-3-Clause
// A sharded job that goes on with fewer ranks: the remaining ranks resume from the rows that all ranks saved, and
// divide them anew. The scenario decides which ranks crash, when, and whether they come back.
#include <chrono>

#include "training.h"

#include <rehearse/job/program.h>

namespace {

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  const elastic_fsdp::Job job{parameters.integer("steps"), parameters.integer("rows"),
                              parameters.integer("save_every")};
  rehearse::elastic::Options options;
  options.rendezvous.min_ranks = static_cast<int>(parameters.integer("min_ranks"));
  options.rendezvous.last_call = std::chrono::milliseconds(parameters.integer("last_call_ms"));
  options.max_restarts = static_cast<int>(parameters.integer("max_restarts"));
  const auto at_the_end = elastic_fsdp::train(ctx, job, options);
  if (at_the_end.defined()) ctx.result("parameters", at_the_end);
}

REHEARSE_PROGRAM(elastic_fsdp){
    .summary = "FullyShardedDataParallel that survives the loss of ranks",
    .parameters = {{"steps", std::int64_t{8}, "training steps", 1, 1e6},
                   {"rows", std::int64_t{12}, "rows of a step, for all ranks together", 1, 1e6},
                   {"save_every", std::int64_t{1}, "steps between checkpoints", 1, 1e6},
                   {"min_ranks", std::int64_t{2}, "go on with so many; 0: all must come back", 0, 1e4},
                   {"last_call_ms", std::int64_t{1}, "how long to wait for the rest", 0, 1e6},
                   {"max_restarts", std::int64_t{3}, "rounds that a rank may lose", 0, 1e6}},
    .body = train};

}  // namespace
