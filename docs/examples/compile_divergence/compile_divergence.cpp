// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks compile at different times. In the first step all ranks compile the score and exchange their sizes.
// Later the last rank alone gets a smaller batch, the rest of its data. Its guard fails, so it compiles again and waits
// for the others. Their guards hold, so they wait for it in the all-reduce. On a cluster that is a hang without a
// culprit. Here the report names the rank, the call and the guard. With guard collectives, all compile if one must.
#include <rehearse/compile/compile.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

namespace {

constexpr std::int64_t kRows = 20, kRest = 12;

at::Tensor batch_of(const rehearse::RankContext& ctx, std::int64_t step, std::int64_t steps) {
  const bool is_rest = ctx.rank() + 1 == ctx.size() && step + 1 == steps;
  const std::int64_t rows = is_rest ? kRest : kRows;
  return at::sin(at::arange(rows * 8, at::kFloat).view({rows, 8}) + step);
}

at::Tensor score_of(const at::Tensor& x) { return at::tanh(x).square().sum(); }

void evaluate(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  auto score = rehearse::compile(score_of, {.fullgraph = true,
                                            .group = ctx.group(),
                                            .guard_collectives = parameters.flag("guard_collectives"),
                                            .name = "score_of",
                                            .argument_names = {"x"}});
  const auto steps = parameters.integer("steps");
  double sum = 0, expected = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto x = batch_of(ctx, step, steps);
    auto total = score(x).clone();
    ctx.group().allreduce(total)->wait();
    sum += total.item<double>();
    auto eager = score_of(x);
    ctx.group().allreduce(eager)->wait();
    expected += eager.item<double>();
    ctx.progress(step + 1, steps, "score " + std::to_string(sum));
  }
  ctx.expect(sum == expected, "the score is that of the function as it is");
  ctx.expect(score.stats().compiles == 2, "every rank has compiled twice");
}

REHEARSE_PROGRAM(compile_divergence){
    .summary = "one rank compiles alone and waits forever: the report, and the cure",
    .parameters = {{"steps", std::int64_t{3}, "batches for each rank; the last one of the last rank is smaller", 2,
                    1e6},
                   {"guard_collectives", false, "all ranks compile where one has to: the cure"}},
    .body = evaluate};

}  // namespace
