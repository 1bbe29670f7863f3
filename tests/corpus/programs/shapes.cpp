// SPDX-License-Identifier: BSD-3-Clause
// Sizes, types and splits that do not fit. Also correct calls that other simulators and libraries got wrong.
#include <ATen/ATen.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

void reduces_two_elements_more(RankContext& ctx, bool corrected) {
  const std::int64_t elements = ctx.rank() == 0 && !corrected ? 409600 : 409598;
  ctx.group().allreduce(at::ones({elements}))->wait();  // <- B096
}

void reduces_two_types(RankContext& ctx, bool corrected) {
  const auto type = ctx.rank() % 2 == 0 || corrected ? at::kBFloat16 : at::kFloat;
  ctx.group().allreduce(at::ones({1}, type))->wait();  // <- B097
}

void pads_batches_apart(RankContext& ctx, bool corrected) {
  const auto tokens = at::full({1}, ctx.rank() == 1 ? 1024 : 2048);
  if (corrected) ctx.group().allreduce(tokens, c10d::ReduceOp::MAX)->wait();
  ctx.group().allreduce(at::ones({tokens.item<std::int64_t>()}))->wait();  // <- B099
}

// Each rank has splits of its own. Every receiver expects exactly the rows that the sender sends.
void exchanges_uneven_splits(RankContext& ctx, bool) {
  const std::vector<std::vector<std::int64_t>> sends{{3, 2, 1}, {2, 2, 2}, {1, 2, 3}};
  const auto own = static_cast<std::size_t>(ctx.rank());
  std::vector<std::int64_t> receives;
  for (const auto& row : sends) receives.push_back(row[own]);
  const auto routed = at::zeros({6});
  ctx.group().alltoall(routed, at::full({6}, 1.0 * ctx.rank()), receives, sends[own])->wait();  // <- B105
  const auto expected = at::repeat_interleave(at::arange(3, at::kFloat), at::tensor(receives));
  ctx.expect(at::equal(routed, expected), "rows arrive in order of rank");
}

void expects_more_rows_than_are_sent(RankContext& ctx, bool corrected) {
  const std::vector<std::int64_t> sends{1, 1}, receives{1, ctx.rank() == 0 && !corrected ? 3 : 1};
  const auto routed = at::zeros({receives[0] + receives[1]});
  ctx.group().alltoall(routed, at::ones({2}), receives, sends)->wait();  // <- B106
}

// The call has no splits, and one rank's rows do not divide evenly.
void exchanges_five_rows_between_two(RankContext& ctx, bool corrected) {
  const std::int64_t rows = ctx.rank() == 1 && !corrected ? 5 : 6;
  ctx.group().alltoall(at::zeros({rows}), at::ones({rows}))->wait();  // <- B107
}

// A mean over one rank is the identity, to the last element.
void averages_alone(RankContext& ctx, bool) {
  for (int rank = 0; rank < ctx.size(); ++rank) {
    const auto alone = ctx.new_group({rank});
    if (!alone) continue;
    for (const std::int64_t elements : {1, 7, 8, 129, 1000}) {
      const auto before = at::arange(elements, at::kFloat), after = before.clone(), part = at::zeros({elements});
      alone.allreduce(after, c10d::ReduceOp::AVG)->wait();  // <- B130
      alone.reduce_scatter(part, {before}, c10d::ReduceOp::AVG)->wait();
      ctx.expect(at::equal(after, before) && at::equal(part, before), "a mean over one rank is the identity");
    }
  }
}

// A planned hang: rank 0 has twice as many elements. In the bug report, a timeout fired, but nothing ended the job.
void hangs_as_planned(RankContext& ctx, bool corrected) {
  const std::int64_t elements = ctx.rank() == 0 && !corrected ? 2048 : 1024;
  const auto work = ctx.group().allreduce(at::ones({elements}));  // <- B119
  while (!work->isCompleted()) {
  }
}

}  // namespace

Entries shapes() {
  return {
      {"B096",
       reduces_two_elements_more,
       {.ranks = 8},
       Verdict::mismatch,
       {0},
       "rank 0 called allreduce(sum, float32[409600], cpu) while ranks 1-7 called allreduce(sum, float32[409598], cpu) "
       "as #1 of group \"world\": shape [409600], not [409598]"},
      {"B097",
       reduces_two_types,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 0 called allreduce(sum, bfloat16[1], cpu), rank 1 called "
       "allreduce(sum, float32[1], cpu); they differ in dtype (bfloat16, float32)"},
      {"B099",
       pads_batches_apart,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called allreduce(sum, float32[1024], cpu) while ranks 0,2 called allreduce(sum, float32[2048], cpu) as "
       "#1 of group \"world\": shape [1024], not [2048]"},
      {"B105", exchanges_uneven_splits, {.ranks = 3}},
      {"B106",
       expects_more_rows_than_are_sent,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 1 sends 1 element to rank 0, which expects 3; rank 0 "
       "called alltoall_base(float32[2], cpu, send [1, 1], receive [1, 3]), rank 1 called alltoall_base(float32[2], "
       "cpu, send [1, 1], receive [1, 1])"},
      {"B107",
       exchanges_five_rows_between_two,
       {.ranks = 2},
       Verdict::rank_failed,
       {1},
       "rank 1: rehearse::alltoall_base: Tensor's dim 0 does not divide equally across group size (5 rows for 2 "
       "ranks; 4 or 6 fit, or splits)"},
      {"B119",
       hangs_as_planned,
       {.ranks = 8},
       Verdict::mismatch,
       {0},
       "rank 0 called allreduce(sum, float32[2048], cpu) while ranks 1-7 called allreduce(sum, float32[1024], cpu) as "
       "#1 of group \"world\": shape [2048], not [1024]"},
      {"B130", averages_alone, {.ranks = 2}},
  };
}

}  // namespace corpus
