// SPDX-License-Identifier: BSD-3-Clause
// Gradients that differ from those of one process with the whole batch: weighted differently, divided by the wrong
// number, or reduced twice. The model has a single parameter.
#include <ATen/ATen.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

using rehearse::checks::ModelState;

struct OneWeight {
  at::Tensor weight = at::full({4}, 0.5).set_requires_grad(true);
  ModelState state(const char* name = "weight") const { return {{name, weight}}; }
  at::Tensor loss(const at::Tensor& x) const { return (weight * x).square().sum(); }
};

// `count` samples, starting at number `from`. Each has values of its own.
at::Tensor samples(std::int64_t count, std::int64_t from = 0) {
  return at::sin(at::arange(from * 4, (from + count) * 4, at::kFloat)).view({count, 4});
}

void reduce(const RankContext& ctx, const at::Tensor& gradient, double divisor) {
  ctx.group().allreduce(gradient)->wait();
  gradient.div_(divisor);
}

// Each rank averages its loss over its tokens, and ranks average the gradients. Ranks with few tokens weigh too much.
void averages_averages(RankContext& ctx, bool corrected) {
  OneWeight model;
  const std::int64_t counts[] = {10, 90};
  const auto x = samples(counts[ctx.rank()], ctx.rank() == 0 ? 0 : 10);
  (model.loss(x) / (corrected ? 50.0 : static_cast<double>(counts[ctx.rank()]))).backward();
  reduce(ctx, model.weight.grad(), 2);
  ctx.check_gradients(model.state(), [&] { return model.loss(samples(100)) / 100; });  // <- B045
}

// The loss is multiplied by the number of ranks, although the gradients are means over all ranks.
void multiplies_loss_by_ranks(RankContext& ctx, bool corrected) {
  OneWeight model;
  (model.loss(samples(2, 2 * ctx.rank())) / 2 * (corrected ? 1 : ctx.size())).backward();
  reduce(ctx, model.weight.grad(), ctx.size());
  ctx.check_gradients(model.state(), [&] { return model.loss(samples(8)) / 8; });  // <- B047
}

// Each stage of a pipeline clips by the norm of its own gradients.
void clips_by_own_norm(RankContext& ctx, bool corrected) {
  auto squares = at::full({1}, ctx.rank() == 0 ? 4.0 : 1.0);
  if (corrected) ctx.group().allreduce(squares)->wait();
  const auto factor = 1 / squares.sqrt();
  ctx.check_replicas({{"clip factor", factor}});  // <- B048
}

// Two ranks share the experts, and together see all tokens. The gradients are divided as if there were only one rank.
void divides_experts_by_dp(RankContext& ctx, bool corrected) {
  OneWeight expert;
  const int data_parallel = 1, expert_parallel = 2;
  (expert.loss(samples(2, 2 * ctx.rank())) / 2).backward();
  reduce(ctx, expert.weight.grad(), corrected ? data_parallel * expert_parallel : data_parallel);
  ctx.check_gradients(expert.state("experts.w1"), [&] { return expert.loss(samples(4)) / 4; });  // <- B049
}

// The function that finishes the reduction starts it again.
void reduces_twice(RankContext& ctx, bool corrected) {
  OneWeight model;
  (model.loss(samples(2, 2 * ctx.rank())) / 4).backward();
  const auto start = [&] { return ctx.group().allreduce(model.weight.grad()); };
  start()->wait();
  if (!corrected) start()->wait();
  ctx.check_gradients(model.state(), [&] { return model.loss(samples(4)) / 4; });  // <- B050
}

// The backward of synchronised batch norm averages the means of batches of 2 and of 6 samples.
void averages_over_ranks_in_backward(RankContext& ctx, bool corrected) {
  OneWeight model;
  const std::int64_t count = ctx.rank() == 0 ? 2 : 6;
  const auto x = samples(count, ctx.rank() == 0 ? 0 : 2);
  (model.loss(x) / (corrected ? 4.0 : static_cast<double>(count))).backward();
  reduce(ctx, model.weight.grad(), 2);
  ctx.check_gradients(model.state("bn.weight"), [&] { return model.loss(samples(8)) / 8; });  // <- B072
}

// In the first window, of 2 micro-batches, DDP learns how many backwards precede a reduction. The second window has 3.
void learns_the_number_of_micro_batches(RankContext& ctx, bool corrected) {
  OneWeight model;
  int learned = 0;
  for (const int window : {2, 3}) {
    model.weight.mutable_grad() = at::Tensor();
    if (learned == 0 || corrected) learned = window;
    for (int micro = 1; micro <= window; ++micro) {
      model.loss(samples(1, micro * ctx.size() + ctx.rank())).backward();
      if (micro == learned) reduce(ctx, model.weight.grad(), 1);
    }
    const auto of_all = [&] { return model.loss(samples(window * ctx.size(), ctx.size())); };
    ctx.check_gradients(model.state("bucket 0"), of_all);  // <- B080
  }
}

}  // namespace

Entries averages() {
  return {
      {"B045",
       averages_averages,
       {.ranks = 2},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #1: the gradient of \"weight\" is no multiple of what one "
       "process computes: ranks have parts of different sizes (0.1 of all on rank 0, 0.9 on rank 1), and each part "
       "counts for 0.5",
       "it would be right with each rank's part multiplied by 0.2 on rank 0, 1.8 on rank 1: *"},
      {"B047",
       multiplies_loss_by_ranks,
       {.ranks = 4},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #1: the gradient of \"weight\" is 4 times as large (= "
       "number of ranks), although the reduction takes the mean: each rank's loss is a sum over a batch of 4 where the "
       "mean is meant, or is multiplied by the number of ranks"},
      {"B048",
       clips_by_own_norm,
       {.ranks = 2},
       Verdict::check_failed,
       {0, 1},
       "replicas differ in check #1: ranks 0-1 have 2 different \"clip factor\" (rank 1 against rank 0: 1 of 1 "
       "element, by up to 0.5 at [0]: 1, not 0.5)"},
      {"B049",
       divides_experts_by_dp,
       {.ranks = 2},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #1: the gradient of \"experts.w1\" is 2 times as large (= "
       "number of ranks): a sum where the mean is meant, or reduced or added up twice"},
      {"B050",
       reduces_twice,
       {.ranks = 2},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #1: the gradient of \"weight\" is 2 times as large (= "
       "number of ranks): a sum where the mean is meant, or reduced or added up twice",
       "the gradient of \"weight\" was reduced 2 times: allreduce #1 on group \"world\" at *, allreduce #2 on *"},
      {"B072",
       averages_over_ranks_in_backward,
       {.ranks = 2},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #1: the gradient of \"bn.weight\" is no multiple of what "
       "one process computes: ranks have parts of different sizes (0.25 of all on rank 0, 0.75 on rank 1), and each "
       "part counts for 0.5"},
      {"B080",
       learns_the_number_of_micro_batches,
       {.ranks = 2},
       Verdict::check_failed,
       {},
       "gradients differ from those of one process in check #2: the gradient of \"bucket 0\" is not the same on all "
       "ranks, and neither their mean nor their sum is that of one process"},
  };
}

}  // namespace corpus
