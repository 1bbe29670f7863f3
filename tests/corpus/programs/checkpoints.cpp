// SPDX-License-Identifier: BSD-3-Clause
// Saving and loading. The store takes the place of the file system that ranks share.
#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include <rehearse/comm/object_collectives.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

std::string loader_state(int rank) { return "dataloader.dp_rank_" + std::to_string(rank); }

// Four ranks saved, and two load: the state of two data loaders is lost.
void loads_with_fewer_ranks(RankContext& ctx, bool corrected) {
  const int saved_by = corrected ? ctx.size() : 4;
  if (ctx.rank() == 0) {
    for (int rank = 0; rank < saved_by; ++rank) ctx.store()->set(loader_state(rank), "batch 7");
  }
  ctx.group().barrier()->wait();
  ctx.store()->deleteKey(loader_state(ctx.rank()));
  ctx.group().barrier()->wait();
  if (ctx.rank() != 0) return;
  const bool is_left = ctx.store()->check({loader_state(ctx.size())});
  ctx.expect(!is_left, "every saved state is loaded", loader_state(ctx.size()) + " is left");  // <- B039
}

// Rank 1 returns from save() before rank 0 has committed the file, and then looks for it.
void loads_before_save_is_over(RankContext& ctx, bool corrected) {
  if (ctx.rank() == 0) ctx.store()->set("step-100/metadata", "all shards");
  if (corrected) ctx.group().barrier()->wait();
  if (ctx.store()->check({"step-100/metadata"})) rehearse::comm::broadcast_object(ctx.group(), "state");
  ctx.group().allreduce(at::ones({4}))->wait();  // <- B040
}

// The groups for saving contain all ranks, but half of the ranks serve requests and never save.
void saves_with_serving_ranks(RankContext& ctx, bool corrected) {
  const bool trains = ctx.rank() < 2;
  const auto even = ctx.new_group(corrected ? std::vector{0} : std::vector{0, 2}, "dp0");
  const auto odd = ctx.new_group(corrected ? std::vector{1} : std::vector{1, 3}, "dp1");
  if (trains) {
    rehearse::comm::all_gather_object(even ? even : odd, "shard");  // <- B042
    ctx.store()->add("saved", 1);
    if (ctx.store()->add("saved", 0) == 2) ctx.store()->set("stop serving", "yes");
  } else {
    ctx.store()->wait({"stop serving"});
  }
}

// Finalising an asynchronous save is a collective, but only rank 0 runs the hook that finalises the save.
void finalizes_on_rank_0(RankContext& ctx, bool corrected) {
  ctx.group().allreduce(at::ones({4}))->wait();
  if (ctx.rank() == 0 || corrected) ctx.group().allreduce(at::ones({1}))->wait();  // <- B043
}

void load_shard(const RankContext& ctx) {
  if (ctx.rank() == 2) throw std::runtime_error("shard 2 is truncated");  // <- B044
}

// One rank's exception in the middle of a load leaves the others in the load's collectives.
void throws_while_loading(RankContext& ctx, bool corrected) {
  const auto failed = at::zeros({1});
  try {
    load_shard(ctx);
  } catch (const std::exception&) {
    if (!corrected) throw;
    failed.fill_(1);
  }
  if (corrected) ctx.group().allreduce(failed, c10d::ReduceOp::MAX)->wait();
  if (failed.item<float>() == 0) ctx.group().barrier()->wait();
}

}  // namespace

Entries checkpoints() {
  return {
      {"B039",
       loads_with_fewer_ranks,
       {.ranks = 2},
       Verdict::check_failed,
       {0},
       "rank 0: check \"every saved state is loaded\" did not hold: dataloader.dp_rank_2 is left"},
      {"B040",
       loads_before_save_is_over,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 0 called broadcast(root=0, int64[1], cpu), rank 1 called "
       "allreduce(sum, float32[4], cpu); they differ in op (broadcast, allreduce), *",
       "rank 1: store check at * in corpus::loads_before_save_is_over did not find \"step-100/metadata\", which rank 0 "
       "found there*",
       false},
      {"B042",
       saves_with_serving_ranks,
       {.ranks = 4},
       Verdict::deadlock,
       {2, 3},
       "ranks 2-3 wait forever in store wait for key \"stop serving\", which is not set, at checkpoints.cpp:* in "
       "corpus::saves_with_serving_ranks; rank 0 waits for them in allgather #1 on group \"dp0\", rank 1 in allgather "
       "#1 on "
       "group \"dp1\""},
      {"B043",
       finalizes_on_rank_0,
       {.ranks = 2},
       Verdict::deadlock,
       {1},
       "allreduce #2 on group \"world\": rank 1 has ended and will never come"},
      {"B044", throws_while_loading, {.ranks = 4}, Verdict::rank_failed, {2}, "rank 2: shard 2 is truncated"},
  };
}

}  // namespace corpus
