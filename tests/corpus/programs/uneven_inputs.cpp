// SPDX-License-Identifier: BSD-3-Clause
// Ranks with different numbers of batches, and with empty ones. Also experts that only some ranks use.
#include <ATen/ATen.h>

#include <string>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// Synchronised batch norm gathers in the forward and reduces in the backward. An empty batch skips the backward.
void skips_backward_of_an_empty_batch(RankContext& ctx, bool corrected) {
  const std::int64_t samples = ctx.rank() == 0 ? 0 : 2;
  for (int step = 0; step < 2; ++step) {
    const auto statistics = at::full({3}, static_cast<double>(samples));
    ctx.group().allgather(room_for(statistics, ctx.size()), statistics)->wait();  // <- B073
    if (samples > 0 || corrected) ctx.group().allreduce(at::ones({2}))->wait();
  }
}

// Shards of 10 and 12 samples, batches of 5: each rank makes as many steps as its own shard has batches.
void trains_to_exhaustion(RankContext& ctx, bool corrected) {
  const std::int64_t samples = ctx.rank() == 0 ? 10 : 12;
  const auto batches = at::full({1}, (samples + 4) / 5);
  if (corrected) ctx.group().allreduce(batches, c10d::ReduceOp::MIN)->wait();
  for (std::int64_t batch = 0; batch < batches.item<std::int64_t>(); ++batch)
    ctx.group().allreduce(at::ones({4}))->wait();
  const auto accuracy = at::ones({1});
  ctx.group().allgather(room_for(accuracy, ctx.size()), accuracy)->wait();  // <- B074
}

// An expert gathers parameters when called, and then reduces gradients. A rank calls only the experts of its tokens.
void calls_experts_by_tokens(RankContext& ctx, bool corrected) {
  std::vector<std::string> experts{"expert0"};
  if (ctx.rank() != 0 || corrected) experts.emplace_back("expert1");
  const auto shard = at::ones({2});
  for (const auto& expert : experts) {
    const auto label = ctx.label(expert);
    ctx.group().allgather(room_for(shard, ctx.size()), shard)->wait();
  }
  for (const auto& expert : experts) {
    const auto label = ctx.label(expert);
    const std::vector<at::Tensor> gradients(static_cast<std::size_t>(ctx.size()), at::ones({2}));
    ctx.group().reduce_scatter(at::zeros({2}), gradients)->wait();  // <- B116
  }
}

}  // namespace

Entries uneven_inputs() {
  return {
      {"B073",
       skips_backward_of_an_empty_batch,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allgather(float32 3 x [3], cpu) while ranks 1-2 called allreduce(sum, float32[2], cpu) as #2 of "
       "group \"world\": op allgather, not allreduce, shape 3 x [3], not [2]"},
      {"B074",
       trains_to_exhaustion,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allgather(float32 3 x [1], cpu) while ranks 1-2 called allreduce(sum, float32[4], cpu) as #3 of "
       "group \"world\": op allgather, not allreduce, shape 3 x [1], not [4]"},
      {"B116",
       calls_experts_by_tokens,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called reduce_scatter(sum, float32 3 x [2], cpu) label=\"expert0\" while ranks 1-2 called "
       "allgather(float32 3 x [2], cpu) label=\"expert1\" as #2 of group \"world\": op reduce_scatter, not allgather, "
       "label differs"},
  };
}

}  // namespace corpus
