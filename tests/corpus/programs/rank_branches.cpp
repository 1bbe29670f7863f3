// SPDX-License-Identifier: BSD-3-Clause
// Collectives that only some ranks call, because a branch differs between ranks.
#include <ATen/ATen.h>

#include <rehearse/comm/object_collectives.h>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// "Save if it is better", by a loss that only rank 0 gets from reduce().
void saves_if_better(RankContext& ctx, bool corrected) {
  const auto shard = at::ones({2});
  for (int step = 0; step < 2; ++step) {
    const auto loss = at::full({1}, ctx.rank() == 0 ? 0.0 : 1.2);
    if (corrected) {
      ctx.group().allreduce(loss, c10d::ReduceOp::AVG)->wait();
    } else {
      ctx.group().reduce(loss, 0, c10d::ReduceOp::AVG)->wait();
    }
    if (loss.item<float>() < 1) ctx.group().allgather(room_for(shard, ctx.size()), shard)->wait();  // <- B001
  }
}

// Ranks ask whether a checkpoint exists. Rank 0 may already have written one. The store takes the file system's place.
void takes_version_of_file(RankContext& ctx, bool corrected) {
  const auto version = at::zeros({1}, at::kLong);
  bool there = false;
  if (!corrected || ctx.rank() == 0) there = ctx.store()->check({"last.ckpt"});
  if (ctx.rank() == 0) ctx.store()->set("last.ckpt", "weights");
  if (corrected) {
    const auto decided = at::full({1}, there ? 1 : 0);
    ctx.group().broadcast(decided)->wait();
    there = decided.item<std::int64_t>() != 0;
  }
  if (there) ctx.group().broadcast(version)->wait();
  ctx.group().allreduce(at::ones({4}))->wait();  // <- B002
}

// The first frame of a video skips a module with synchronised batch norm. Ranks are at different frames.
void skips_sync_batch_norm(RankContext& ctx, bool corrected) {
  const int frame = ctx.rank() == 0 ? 0 : 3;
  const auto statistics = at::ones({3});
  if (corrected || frame != 0) ctx.group().allgather(room_for(statistics, ctx.size()), statistics)->wait();  // <- B003
  ctx.group().allreduce(at::ones({16}))->wait();
}

// A rank without tokens returns early from a step, and is a step ahead of the other rank from then on.
void returns_without_tokens(RankContext& ctx, bool corrected) {
  const auto part = at::ones({2});
  for (int step = 0; step < 20; ++step) {
    const bool has_tokens = step != 16 || ctx.rank() != 1;
    if (!has_tokens && !corrected) continue;
    ctx.group().allreduce(at::full({4}, has_tokens ? 1 : 0))->wait();  // <- B004
    ctx.group().reduce_scatter(part, {at::ones({2}), at::ones({2})})->wait();
  }
}

// Each step asks whether any rank has more data, and then reduces gradients. Rank 3 decides by its own data.
void asks_for_more_data(RankContext& ctx, bool corrected) {
  int batches = ctx.rank() == 3 ? 1 : 2;
  for (bool more = true; more; --batches) {
    const auto have = at::full({1}, batches > 0 ? 1.0 : 0.0);
    {
      const auto label = ctx.label("have_more_data");
      ctx.group().allreduce(have, c10d::ReduceOp::MAX)->wait();  // <- B005
    }
    more = have.item<float>() > 0;
    if (!more || (!corrected && batches <= 0)) continue;
    const auto label = ctx.label("grads");
    ctx.group().allreduce(at::ones({1}))->wait();
  }
}

bool profiler_enabled(const RankContext& ctx, bool corrected) { return corrected || ctx.rank() == 0; }

// The test for process 0 is hidden in a helper function.
void profiles_on_process_0(RankContext& ctx, bool corrected) {
  if (profiler_enabled(ctx, corrected)) ctx.group().allreduce(at::ones({8}))->wait();  // <- B007
}

// Each rank makes up a name for the run. Only rank 0's name has a checkpoint.
void resumes_by_own_name(RankContext& ctx, bool corrected) {
  const auto weights = at::ones({8});
  if (ctx.rank() == 0) ctx.store()->set("run-0", "weights");
  std::string folder = "run-" + std::to_string(ctx.rank());
  if (corrected) folder = rehearse::comm::broadcast_object(ctx.group(), folder);
  if (ctx.store()->check({folder})) {
    ctx.group().broadcast(weights)->wait();
  } else {
    rehearse::comm::all_gather_object(ctx.group(), "begins anew");  // <- B008
  }
}

// Each call of the head gathers its parameters. Ranks call the head once per crop, and have different numbers of crops.
void calls_head_by_crops(RankContext& ctx, bool corrected) {
  const auto shard = at::ones({4});
  const int crops = corrected || ctx.rank() == 1 ? 3 : 1;
  for (int crop = 0; crop < crops; ++crop)
    ctx.group().allgather(room_for(shard, ctx.size()), shard)->wait();  // <- B009
  ctx.group().allreduce(at::ones({1}))->wait();
}

void gathers_metrics_on_main(RankContext& ctx, bool corrected) {
  const auto metrics = at::ones({2});
  const bool is_main = ctx.rank() == 0;
  if (is_main || corrected) ctx.group().allgather(room_for(metrics, ctx.size()), metrics)->wait();  // <- B010
  ctx.group().allreduce(at::ones({4}))->wait();
}

}  // namespace

// In B001, the checker of buffers would find the read of the partial sum first.
Entries rank_branches() {
  return {
      {"B001",
       saves_if_better,
       {.ranks = 4, .check_level = rehearse::CheckLevel::none},
       Verdict::mismatch,
       {0},
       "rank 0 called allgather(float32 4 x [2], cpu) while ranks 1-3 called reduce(root=0, avg, float32[1], cpu) as "
       "#2 of group \"world\": op allgather, not reduce, shape 4 x [2], not [1]"},
      {"B002",
       takes_version_of_file,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 0 called allreduce(sum, float32[4], cpu), rank 1 called "
       "broadcast(root=0, int64[1], cpu); they differ in op (allreduce, broadcast), *",
       "rank 0: store check at * did not find \"last.ckpt\", which rank 1 found there; rank 0 set it later at *",
       false},
      {"B003",
       skips_sync_batch_norm,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allreduce(sum, float32[16], cpu) while ranks 1-2 called allgather(float32 3 x [3], cpu) as #1 of "
       "group \"world\": op allreduce, not allgather, shape [16], not 3 x [3]"},
      {"B004",
       returns_without_tokens,
       {.ranks = 2},
       Verdict::deadlock,
       {1},
       "allreduce #39 on group \"world\": rank 1 has ended and will never come",
       "the calls from one line look the same: *"},
      {"B005",
       asks_for_more_data,
       {.ranks = 4},
       Verdict::mismatch,
       {3},
       "rank 3 called allreduce(max, float32[1], cpu) label=\"have_more_data\" while ranks 0-2 called allreduce(sum, "
       "float32[1], cpu) label=\"grads\" as #4 of group \"world\": reduce_op max, not sum, label differs"},
      {"B007",
       profiles_on_process_0,
       {.ranks = 4},
       Verdict::deadlock,
       {0},
       "rank 0 waits in allreduce #1 on group \"world\" at {} in corpus::profiles_on_process_0 for ranks 1-3, which "
       "have ended and will never come"},
      {"B008",
       resumes_by_own_name,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 0 called broadcast(root=0, float32[8], cpu), rank 1 "
       "called allgather(int64 2 x [1], cpu); they differ in op (broadcast, allgather), shape ([8], 2 x [1]), *",
       "rank 1: store check at * did not find \"run-1\", where rank 0 found \"run-0\""},
      {"B009",
       calls_head_by_crops,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called allgather(float32 3 x [4], cpu) while ranks 0,2 called allreduce(sum, float32[1], cpu) as #2 of "
       "group \"world\": op allgather, not allreduce, shape 3 x [4], not [1]"},
      {"B010",
       gathers_metrics_on_main,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allgather(float32 3 x [2], cpu) while ranks 1-2 called allreduce(sum, float32[4], cpu) as #1 of "
       "group \"world\": op allgather, not allreduce, shape 3 x [2], not [4]"},
  };
}

}  // namespace corpus
