// SPDX-License-Identifier: BSD-3-Clause
// A thousand whole worlds, one after another, need no more memory than one, however they end. Each world has LibTorch's
// state of each rank, groups, a step of DDP, the store and a report.
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/fault.h>
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

// A rank crashes in a gradient hook, inside of backward (as its bucket is reduced), while it waits for the store, or
// while it holds a lock. Its stack is gone when the world is, and later worlds must not notice.
void crash_in(RankContext& ctx, std::uint64_t place) {
  const bool crashes = ctx.rank() == 1;
  torch::nn::Linear net(8, 4);
  DistributedDataParallel ddp(net, ctx.group());
  std::string step = "of the rank";
  const auto output = ddp.forward(at::ones({2, 8}));
  output.register_hook([&](const at::Tensor&) {
    if (crashes && place == 0) ctx.store()->get("gradient " + step);
  });
  std::mutex own;
  const std::lock_guard lock(own);
  if (crashes && place == 1) ctx.store()->get("nobody sets it");
  output.sum().backward();
  if (crashes && place == 2) std::thread([&] { ctx.store()->get("thread " + step); }).join();
}

void run_crashes(std::uint64_t worlds) {
  const char* const faults[] = {"crash rank=1 call=get#1 peers=disconnect", "crash rank=1 call=get#1 peers=disconnect",
                                "crash rank=1 call=get#1 peers=disconnect",
                                "crash rank=1 call=allreduce#2 peers=disconnect", "crash rank=1 after=1us"};
  for (std::uint64_t seed = 0; seed < worlds; ++seed) {
    WorldOptions options{.ranks = 3, .seed = seed};
    options.faults = {parse_fault(faults[seed % 5])};
    const auto report = World(options).run([&](RankContext& ctx) { crash_in(ctx, seed % 5); });
    EXPECT_EQ(report.rank_lines.at(1).state, RankOutcome::crashed) << seed << ": " << report.headline;
  }
}

TEST(ManyWorlds, CrashedRanks_GiveTheirStacksBack) {
  run_crashes(20);
  const std::size_t before = exec::test::memory_maps();
  const char* const many = std::getenv("REHEARSE_CRASHED_WORLDS");
  run_crashes(many != nullptr ? std::stoull(many) : 100);
  if (kFreedMemoryIsReused) {
    EXPECT_LT(exec::test::memory_maps(), before + 20);
  }
}

TEST(ManyWorlds, With256Ranks_DoNotGrow) {
  expect_no_growth(4, 16, [](std::uint64_t) { return 256; });
}

}  // namespace
}  // namespace rehearse
