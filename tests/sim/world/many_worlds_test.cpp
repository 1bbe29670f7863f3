// SPDX-License-Identifier: BSD-3-Clause
// A thousand whole worlds, one after another, need no more memory than one, however they end. Each world has LibTorch's
// state of each rank, groups, a step of DDP, the store and a report.
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "core/exec/process_memory.h"

namespace rehearse {
namespace {

using exec::test::allocated_bytes;
using exec::test::kFreedMemoryIsReused;
using exec::test::resident_bytes;

constexpr Verdict kVerdicts[] = {Verdict::ok, Verdict::rank_failed, Verdict::deadlock, Verdict::mismatch};

void job(RankContext& ctx, Verdict verdict) {
  const auto pair = ctx.new_group({0, 1}, "pair");
  {
    DistributedDataParallel ddp(torch::nn::Linear(8, 4), ctx.group());
    ddp.forward(at::ones({2, 8})).sum().backward();
    if (pair) pair.allreduce(at::ones({4}))->wait();
    ctx.local<int>() = ctx.rank();
    ctx.store()->add("steps", 1);
    if (verdict == Verdict::rank_failed && ctx.rank() == 1) throw std::runtime_error("boom");
  }
  if (verdict == Verdict::deadlock && ctx.rank() == 1) return;
  const auto label = ctx.label("last");
  const auto size = verdict == Verdict::mismatch && ctx.rank() == 1 ? 3 : 2;
  ctx.group().allreduce(at::ones({size}))->wait();
}

void run_world(int ranks, std::uint64_t seed) {
  const auto verdict = kVerdicts[seed % 4];
  const auto report = World({.ranks = ranks, .seed = seed}).run([&](RankContext& ctx) { job(ctx, verdict); });
  EXPECT_EQ(report.verdict, verdict) << report.headline;
}

void expect_no_growth(std::uint64_t warm, std::uint64_t measured, int (*ranks_of)(std::uint64_t seed)) {
  for (std::uint64_t seed = 0; seed < warm; ++seed) run_world(ranks_of(seed), seed);
  const std::size_t used = allocated_bytes();
  const std::size_t resident = resident_bytes();
  ASSERT_GT(used, 0u);
  ASSERT_GT(resident, 0u);
  std::size_t ranks = 0;
  for (std::uint64_t seed = warm; seed < warm + measured; ++seed) {
    run_world(ranks_of(seed), seed);
    ranks += static_cast<std::size_t>(ranks_of(seed));
  }
  // The limit is not 0, because malloc counts its reserve as used. If each rank lost one object of at least 32 bytes,
  // the limit would be exceeded.
  EXPECT_LT(allocated_bytes(), used + 16 * ranks);
  // The limit allows fragmentation, but no growth: stacks and tensors of one world take more than that.
  if (kFreedMemoryIsReused) {
    EXPECT_LT(resident_bytes(), resident + (std::size_t{1} << 20));
  }
}

TEST(ManyWorlds, AThousandWithLibTorch_DoNotGrow) {
  expect_no_growth(100, 1'000, [](std::uint64_t seed) { return static_cast<int>(2 + seed / 4 % 3); });
}

TEST(ManyWorlds, With256Ranks_DoNotGrow) {
  expect_no_growth(4, 16, [](std::uint64_t) { return 256; });
}

}  // namespace
}  // namespace rehearse
