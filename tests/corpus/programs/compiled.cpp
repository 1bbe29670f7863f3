// SPDX-License-Identifier: BSD-3-Clause
// Compilation that is itself a collective.
#include <ATen/ATen.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

at::Tensor score_of(const at::Tensor& x) { return at::tanh(x).sum(); }

// A guard fails on one rank, so this rank compiles and waits for the others. They hit the cache and all-reduce.
void recompiles_on_one_rank(RankContext& ctx, bool corrected) {
  auto score = rehearse::compile(
      score_of, {.fullgraph = true, .group = ctx.group(), .guard_collectives = corrected, .name = "score_of"});
  for (int step = 0; step < 2; ++step) {
    const auto total = score(at::ones({step == 1 && ctx.rank() == 1 ? 12 : 8})).clone();  // <- B056
    ctx.group().allreduce(total)->wait();
  }
}

at::Tensor shifted(const at::Tensor& x, std::int64_t by) { return x + by; }

// In the bug report, tracing ran real collectives. Here it runs none, so a rank that traces alone gets only a remark.
void traces_on_one_rank(RankContext& ctx, bool corrected) {
  const auto body = [&ctx](const at::Tensor& x, std::int64_t by) {
    return rehearse::functional::all_reduce(shifted(x, by), ctx.group());
  };
  auto mean = rehearse::compile(body, {.fullgraph = true, .name = "mean"});
  for (int step = 0; step < 3; ++step) {
    const std::int64_t by = step == 2 && ctx.rank() == 0 && !corrected ? 4 : 3;
    mean(at::ones({8}), by);  // <- B057
    ctx.group().barrier()->wait();
  }
}

// Ranks exchange sizes when they compile. Their tensors have one dimension on rank 0, and two on the others.
void compiles_for_different_dimensions(RankContext& ctx, bool) {
  auto score = rehearse::compile(score_of, {.fullgraph = true, .group = ctx.group(), .name = "score_of"});
  for (int step = 0; step < 3; ++step) {
    const auto x = ctx.rank() == 0 ? at::ones({8 + step}) : at::ones({4, 2 + step});
    const auto total = score(x).clone();  // <- B059
    ctx.expect(at::equal(total, score_of(x)), "the graph gives what the function gives");
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
       {1},
       "rank 1 compiles score_of (call 2: arg0.size(0) is 12, guard arg0.size(0) == 8 of entry 0) at {} in "
       "corpus::recompiles_on_one_rank, ranks 0,2 used compiled entry 0 in call 2 and are in allreduce #2 on group "
       "\"world\" (2 of 3 ranks have called it) at compiled.cpp:* in corpus::recompiles_on_one_rank; guard collectives "
       "would have made all compile; ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #2 on group \"world\", "
       "rank 1 in allgather #5 of \"inputs of score_of\" on group \"compile of world\""},
      {"B057",
       traces_on_one_rank,
       {.ranks = 2},
       Verdict::ok,
       {},
       "rank 0 alone recompiled mean in call 3: arg1 is 4, guard arg1 == 3 of entry 0 at {} in "
       "corpus::traces_on_one_rank"},
      {"B059", compiles_for_different_dimensions, {.ranks = 2}},
  };
}

}  // namespace corpus
