// SPDX-License-Identifier: BSD-3-Clause
// Compiling that is itself a collective.
#include <ATen/ATen.h>

#include <rehearse/compile/compile.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

at::Tensor score_of(const at::Tensor& x) { return at::tanh(x).sum(); }

// The guard of one rank fails: it compiles, which waits for all; the others hit and go on to their all-reduce.
void recompiles_on_one_rank(RankContext& ctx, bool corrected) {
  auto score = rehearse::compile(
      score_of, {.fullgraph = true, .group = ctx.group(), .guard_collectives = corrected, .name = "score_of"});
  for (int step = 0; step < 2; ++step) {
    const auto total = score(at::ones({step == 1 && ctx.rank() == 1 ? 12 : 8})).clone();  // <- B056
    ctx.group().allreduce(total)->wait();
  }
}

}  // namespace

Entries compiled() {
  return {
      {"B056",
       recompiles_on_one_rank,
       {.ranks = 3},
       Verdict::deadlock,
       {0, 1, 2},
       "rank 1 compiles score_of (call 2: arg0.size(0) is 12, guard arg0.size(0) == 8 of entry 0) at {} in "
       "corpus::recompiles_on_one_rank, ranks 0,2 hit entry 0 in call 2 and are in allreduce #2 on group \"world\" (2 "
       "of 3 ranks are here) at compiled.cpp:* in corpus::recompiles_on_one_rank; guard collectives would have made "
       "all compile; ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #2 on group \"world\", rank 1 in "
       "allgather #5 of \"inputs of score_of\" on group \"compile of world\""},
  };
}

}  // namespace corpus
