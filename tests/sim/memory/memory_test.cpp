// SPDX-License-Identifier: BSD-3-Clause
// Contract: the memory of a rank's tensors is counted to the byte, by source line. An allocation beyond the rank's
// limit throws. If the program does not catch the error, the verdict is OUT OF MEMORY. A world without a limit, and
// without faults of allocations, uses LibTorch's own allocator.
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
using namespace rehearse;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

WorldOptions world_of(std::uint64_t bytes, const std::vector<std::string>& faults = {}) {
  WorldOptions options;
  options.ranks = 2;
  options.memory_bytes = bytes;
  for (const auto& text : faults) options.faults.push_back(parse_fault(text));
  return options;
}

at::Tensor take(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

bool remarks_on(const Report& report, const std::string& text) {
  for (const auto& remark : report.remarks) {
    if (remark.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Memory, WhatWasTakenAtMost_IsRemarkedByPlace) {
  World world(world_of(64 * kMiB));
  const auto report = world.run([](RankContext& ctx) {
    auto kept = take(8 * kMiB);
    {
      auto more = take((ctx.rank() + 1) * 16 * kMiB);
    }
    auto less = take(4 * kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  ASSERT_EQ(report.remarks.size(), 2u);
  EXPECT_TRUE(report.remarks[0].starts_with("memory: rank 0 peaked at 24MiB of 64MiB: 16MiB at memory_test.cpp:"))
      << report.remarks[0];
  EXPECT_TRUE(report.remarks[1].starts_with("memory: rank 1 peaked at 40MiB of 64MiB: 32MiB at memory_test.cpp:"))
      << report.remarks[1];
  EXPECT_TRUE(remarks_on(report, ", 8MiB at memory_test.cpp:")) << report.remarks[0];
}

TEST(Memory, RanksThatTookTheSame_AreOneRemark) {
  World world(world_of(64 * kMiB));
  const auto report = world.run([](RankContext&) { take(kMiB); });
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_TRUE(report.remarks[0].starts_with("memory: ranks 0-1 peaked at 1MiB of 64MiB: 1MiB at "))
      << report.remarks[0];
}

TEST(Memory, MoreThanThereIs_IsAVerdict) {
  World world(world_of(64 * kMiB));
  const auto report = world.run([](RankContext& ctx) {
    auto kept = take(40 * kMiB);
    if (ctx.rank() == 1) auto more = take(24 * kMiB + 1);
    auto rest = take(24 * kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::out_of_memory);
  EXPECT_EQ(exit_code(report.verdict), 10);
  EXPECT_NE(
      report.headline.find("rank 1: out of memory: an allocation of 24MiB does not fit, with 40MiB of 64MiB in use"),
      std::string::npos)
      << report.headline;
  EXPECT_EQ(report.rank_lines[1].state, RankOutcome::failed);
  EXPECT_NE(report.rank_lines[1].where.text.find("memory_test.cpp:"), std::string::npos)
      << report.rank_lines[1].where.text;
}

TEST(Memory, ProgramThatLivesOnWithLess_IsOk) {
  World world(world_of(8 * kMiB));
  const auto report = world.run([](RankContext&) {
    EXPECT_THROW(take(9 * kMiB), c10::OutOfMemoryError);
    take(8 * kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// A tensor may be freed by another rank, or outlive the world.
TEST(Memory, FreedByAnotherRankOrLater_IsGivenBack) {
  std::vector<at::Tensor> left;
  World world(world_of(8 * kMiB));
  std::optional<at::Tensor> lent;
  const auto report = world.run([&](RankContext& ctx) {
    if (ctx.rank() == 0) lent = take(6 * kMiB);
    ctx.group().barrier()->wait();
    if (ctx.rank() == 1) {
      take(7 * kMiB);
      lent.reset();
    }
    ctx.group().barrier()->wait();  // the barrier's own tensor takes a byte
    if (ctx.rank() == 0) left.push_back(take(7 * kMiB));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  left.clear();
}

TEST(Memory, WithoutALimit_IsLibTorchsAllocator) {
  auto* const own = c10::GetCPUAllocator();
  WorldOptions options;
  World(options).run([&](RankContext&) { EXPECT_EQ(c10::GetCPUAllocator(), own); });
  World(world_of(kMiB)).run([&](RankContext&) { EXPECT_NE(c10::GetCPUAllocator(), own); });
  EXPECT_EQ(c10::GetCPUAllocator(), own);
}

TEST(Memory, RankThatBeginsAgain_HasTakenNothing) {
  World world(world_of(10 * kMiB, {"crash rank=1 at=barrier#1 restart=1ms"}));
  const auto report = world.run([](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    const auto kept = take(8 * kMiB);
    if (ctx.incarnation() == 0) ctx.group().barrier()->wait();
    EXPECT_THROW(take(4 * kMiB), c10::OutOfMemoryError);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Memory, StorageThatGrows_HasBothForAMoment) {
  World world(world_of(10 * kMiB));
  const auto report = world.run([](RankContext&) {
    auto grows = take(4 * kMiB);
    grows.resize_({6 * kMiB});
    EXPECT_THROW(grows.resize_({7 * kMiB}), c10::OutOfMemoryError);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(FailAlloc, IsTheNextAllocationOfThatSize) {
  World world(world_of(0, {"fail_alloc rank=1 at=barrier#1 bytes=1MiB"}));
  const auto report = world.run([](RankContext& ctx) {
    take(2 * kMiB);
    ctx.group().barrier()->wait();
    take(kMiB - 1);
    if (ctx.rank() == 1) {
      EXPECT_THROW(take(3 * kMiB), c10::OutOfMemoryError);
    }
    take(3 * kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  ASSERT_EQ(report.faults[0].times, 1u);
  EXPECT_EQ(report.faults[0].fired[0].call, R"(an allocation of 3MiB behind barrier #1 on group "world")");
}

TEST(FailAlloc, ThatIsNotCaught_IsAVerdict) {
  World world(world_of(0, {"fail_alloc rank=0 after=0s bytes=1MiB"}));
  const auto report = world.run([](RankContext& ctx) {
    ctx.group().barrier()->wait();
    take(kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::out_of_memory);
  EXPECT_NE(report.headline.find("rank 0: out of memory: an injected failure of an allocation of 1MiB"),
            std::string::npos)
      << report.headline;
}

TEST(FailAlloc, FromTheBeginning_IsTheFirstAllocation) {
  World world(world_of(0, {"fail_alloc rank=0 after=0s bytes=1MiB"}));
  const auto report = world.run([](RankContext&) { take(kMiB); });
  EXPECT_EQ(report.verdict, Verdict::out_of_memory) << report.headline;
}

TEST(FailAlloc, WithoutAnAllocation_DidNotFire) {
  World world(world_of(0, {"fail_alloc rank=0 at=barrier#1 bytes=1GiB"}));
  const auto report = world.run([](RankContext& ctx) {
    ctx.group().barrier()->wait();
    take(kMiB);
  });
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline,
            "fail_alloc rank=0 at=barrier#1 bytes=1GiB: rank 0 made no such allocation after it was due");
}

}  // namespace
