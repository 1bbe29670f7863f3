// SPDX-License-Identifier: BSD-3-Clause
#include "first_cases.h"

#include <unistd.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

namespace first_cases {

static bool is_culprit(RankContext& ctx) { return ctx.rank() == ctx.size() / 2; }

void mismatched_collective(RankContext& ctx) {
  auto tensor = at::ones({3});
  if (is_culprit(ctx)) {
    ctx.group().broadcast(tensor)->wait();
  } else {
    ctx.group().allreduce(tensor)->wait();
  }
}

void wrong_root(RankContext& ctx) {
  auto tensor = at::ones({3});
  ctx.group().broadcast(tensor, is_culprit(ctx) ? 1 : 0)->wait();
}

void uneven_alltoall(RankContext& ctx) {
  const std::vector<std::int64_t> sends(static_cast<std::size_t>(ctx.size()), 2);
  auto receives = sends;
  if (is_culprit(ctx)) receives[0] = 3;
  auto input = at::ones({2 * ctx.size()});
  auto output = at::empty({std::accumulate(receives.begin(), receives.end(), std::int64_t{0})});
  ctx.group().alltoall(output, input, receives, sends)->wait();
}

void returns_early(RankContext& ctx) {
  auto tensor = at::ones({3});
  ctx.group().allreduce(tensor)->wait();
  if (is_culprit(ctx)) return;
  ctx.group().allreduce(tensor)->wait();
}

void comes_late(RankContext& ctx) {
  if (is_culprit(ctx)) sleep(45 * 60);
  auto tensor = at::ones({3});
  ctx.group().allreduce(tensor)->wait();
}

void swaps_two_groups(RankContext& ctx) {
  std::vector<int> all(static_cast<std::size_t>(ctx.size()));
  std::iota(all.begin(), all.end(), 0);
  auto first = ctx.new_group(all, "a");
  auto second = ctx.new_group(all, "b");
  if (is_culprit(ctx)) std::swap(first, second);
  auto tensor = at::ones({3});
  first.allreduce(tensor)->wait();
  second.allreduce(tensor)->wait();
}

}  // namespace first_cases
