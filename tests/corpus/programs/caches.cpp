// SPDX-License-Identifier: BSD-3-Clause
// Decisions by a rank's own cache or clock, which other ranks do not share: cache hits, and kernels chosen by timing.
#include <ATen/ATen.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

// Ranks without a cached graph make an extra all-reduce, as large as those of training. Rank 0 has a cached graph.
void decides_where_cache_is_cold(RankContext& ctx, bool corrected) {
  const bool is_warm = ctx.rank() == 0;
  const auto hit = at::full({1}, is_warm ? 1.0 : 0.0);
  if (corrected) ctx.group().allreduce(hit, c10d::ReduceOp::MIN)->wait();
  if (hit.item<float>() == 0) ctx.group().allreduce(at::ones({1}))->wait();  // <- B131
  ctx.group().allreduce(at::ones({1}))->wait();
}

// Each rank times kernels and chooses the fastest by its own times. Each kernel broadcasts a buffer of another size.
void chooses_kernel_by_own_time(RankContext& ctx, bool corrected) {
  const auto times = at::full({2}, 1.02);
  times[1] = ctx.rank() == 3 ? 1.01 : 1.03;
  if (corrected) ctx.group().allreduce(times)->wait();
  const auto kernel = times.argmin().item<std::int64_t>();
  const auto scratch = at::zeros({kernel == 0 ? 1024 : 2048});
  ctx.group().broadcast(scratch)->wait();  // <- B135
  ctx.group().barrier()->wait();
}

// A rank with a cache leaves the warm-up at once. The others reduce the timings of kernels.
void warms_up_without_cache(RankContext& ctx, bool corrected) {
  const auto cached = at::full({1}, ctx.rank() == 0 ? 1.0 : 0.0);
  if (corrected) ctx.group().allreduce(cached, c10d::ReduceOp::MIN)->wait();
  for (int kernel = 0; cached.item<float>() == 0 && kernel < 2; ++kernel) ctx.group().allreduce(at::ones({1}))->wait();
  ctx.group().allreduce(at::ones({16}))->wait();  // <- B136
}

}  // namespace

Entries caches() {
  return {
      {"B131",
       decides_where_cache_is_cold,
       {.ranks = 2},
       Verdict::deadlock,
       {0},
       "rank 0 is out of step from #1 of group \"world\" on: it left out the allreduce at {} in "
       "corpus::decides_where_cache_is_cold, or rank 1 made too many; allreduce #2 on group \"world\": rank 0 has "
       "ended "
       "and will never come"},
      {"B135",
       chooses_kernel_by_own_time,
       {.ranks = 4},
       Verdict::mismatch,
       {3},
       "rank 3 called broadcast(root=0, float32[2048], cpu) while ranks 0-2 called broadcast(root=0, float32[1024], "
       "cpu) as #1 of group \"world\": shape [2048], not [1024]"},
      {"B136",
       warms_up_without_cache,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allreduce(sum, float32[16], cpu) while ranks 1-2 called allreduce(sum, float32[1], cpu) as #1 of "
       "group \"world\": shape [16], not [1]"},
  };
}

}  // namespace corpus
