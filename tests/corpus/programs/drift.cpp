// SPDX-License-Identifier: BSD-3-Clause
// Values that all ranks should share, or that should not occur at all: random choices, NaN, bytes that arrive changed.
#include <ATen/ATen.h>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

at::Generator seeded(const RankContext& ctx, std::uint64_t seed) {
  auto generator = ctx.generator().clone();
  generator.set_current_seed(seed);
  return generator;
}

// The seed of the sampler is the time, multiplied by the rank.
void shuffles_by_own_seed(RankContext& ctx, bool corrected) {
  const auto times = corrected ? 1 : static_cast<std::uint64_t>(ctx.rank());
  const auto order = at::randperm(64, seeded(ctx, 1234 * times));
  ctx.check_replicas({{"sampler order", order}});  // <- B092
}

// Ranks that share their activations drop tokens by random numbers of their own.
void drops_tokens_by_own_noise(RankContext& ctx, bool corrected) {
  const auto seed = corrected ? 7 : 7 + static_cast<std::uint64_t>(ctx.rank());
  const auto keep = std::get<1>(at::rand({16}, seeded(ctx, seed)).topk(4));
  ctx.check_replicas({{"kept tokens", keep}});  // <- B094
  ctx.group().allreduce(at::ones({16}).index_select(0, keep))->wait();
}

// Rank 0's loss decides whether to skip a batch, but rank 2's loss is NaN.
void skips_by_loss_of_rank_0(RankContext& ctx, bool corrected) {
  const auto loss = at::full({1}, ctx.rank() == 2 ? -1.0 : 1.0).log();  // <- B128
  const auto bad = loss.isnan().to(at::kInt);
  if (corrected) {
    ctx.group().allreduce(bad, c10d::ReduceOp::MAX)->wait();
  } else {
    ctx.group().broadcast(bad)->wait();
  }
  if (bad.item<int>() != 0) return;
  ctx.group().allreduce(loss * at::ones({4}))->wait();
}

// A link no longer keeps bytes unchanged: one rank receives other bytes than the sender sent.
void gathers_over_a_bad_link(RankContext& ctx, bool) {
  const auto shard = at::full({8}, 1.0 * ctx.rank());
  const auto gathered = room_for(shard, ctx.size());
  ctx.group().allgather(gathered, shard)->wait();
  ctx.check_replicas({{"gathered", at::cat(gathered)}});  // <- B129
}

WorldOptions with_bad_link() {
  WorldOptions options;
  options.ranks = 3;
  options.faults = {rehearse::parse_fault("corrupt rank=1 at=allgather#1 with=bit")};
  return options;
}

}  // namespace

Entries drift() {
  return {
      {"B092",
       shuffles_by_own_seed,
       {.ranks = 4},
       Verdict::check_failed,
       {0, 1, 2, 3},
       "replicas differ in check #1: ranks 0-3 have 4 different \"sampler order\" (rank 1 against rank 0: 64 of 64 "
       "elements, by up to *)"},
      {"B094",
       drops_tokens_by_own_noise,
       {.ranks = 2},
       Verdict::check_failed,
       {0, 1},
       "replicas differ in check #1: ranks 0-1 have 2 different \"kept tokens\" (rank 1 against rank 0: 4 of 4 "
       "elements, by up to *)"},
      {"B128",
       skips_by_loss_of_rank_0,
       {.ranks = 4, .checks = {.finite = true}},
       Verdict::check_failed,
       {2},
       "allreduce #2 on group \"world\" takes NaN from rank 2, made by aten::log on rank 2 at {} in "
       "corpus::skips_by_loss_of_rank_0"},
      {"B129",
       gathers_over_a_bad_link,
       with_bad_link(),
       Verdict::check_failed,
       {1},
       "replicas differ in check #1: rank 1 has a different \"gathered\" than ranks 0,2 (1 of 24 elements, by up to 2 "
       "at [0]: 2, not 0)",
       {},
       true,
       WorldOptions{.ranks = 3}},
  };
}

}  // namespace corpus
