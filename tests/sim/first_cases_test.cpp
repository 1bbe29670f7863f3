// SPDX-License-Identifier: BSD-3-Clause
// The bugs that people meet first, each on real c10d calls: the verdict, and what its report says about whom.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/this_rank.h>
#include <rehearse/sim/world.h>

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Report run(int ranks, const World::Body& body, std::uint64_t seed = 1) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  return World(options).run(body);
}

TEST(FirstCases, AllRanksAgree_IsSilent) {
  const auto report = run(8, [](RankContext& ctx) {
    auto sum = at::ones({3}) * ctx.rank();
    ctx.group().allreduce(sum)->wait();
    EXPECT_EQ(sum[0].item<int>(), 28);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.operations, 8u);
}

// Slow, but not for ever.
TEST(FirstCases, LoopsThatEndByThemselves_AreNoLivelock) {
  for (const bool all : {false, true}) {
    const auto report = run(4, [all](RankContext& ctx) {
      if (all || ctx.rank() == 0) {
        for (int look = 0; look < 20'000; ++look) {
          if (ctx.store()->check({"never"})) break;
          std::this_thread::yield();
        }
      }
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

TEST(FirstCases, MismatchedCollective_NamesBothCalls) {
  const auto report = run(4, [](RankContext& ctx) {
    auto tensor = at::ones({3});
    if (ctx.rank() == 2) {
      ctx.group().broadcast(tensor)->wait();
    } else {
      ctx.group().allreduce(tensor)->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  ASSERT_EQ(report.differences.size(), 1u);
  const auto& difference = report.differences[0];
  EXPECT_EQ(difference.sequence, 1u);
  EXPECT_EQ(difference.first.ranks, (std::vector{0, 1, 3}));
  EXPECT_EQ(difference.second.ranks, std::vector{2});
  EXPECT_EQ(report.headline,
            "rank 2 called broadcast(root=0, float32[3], cpu) where ranks 0-1,3 called allreduce(sum, float32[3], cpu) "
            "as #1 of group \"world\": op broadcast, not allreduce");
  for (const auto& line : report.rank_lines) EXPECT_EQ(line.state, "blocked");
  ASSERT_FALSE(difference.fields.empty());
  EXPECT_EQ(difference.fields[0].name, "op");
}

TEST(FirstCases, WrongRoot_NamesTheRoots) {
  const auto report = run(4, [](RankContext& ctx) {
    auto tensor = at::ones({3});
    ctx.group().broadcast(tensor, ctx.rank() == 3 ? 1 : 0)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  ASSERT_EQ(report.differences.size(), 1u);
  ASSERT_EQ(report.differences[0].fields.size(), 1u);
  EXPECT_EQ(report.differences[0].fields[0].name, "root");
  EXPECT_EQ(report.differences[0].second.ranks, std::vector{3});
}

TEST(FirstCases, UnevenAllToAll_NamesTheEdge) {
  const auto report = run(2, [](RankContext& ctx) {
    auto input = at::ones({4});
    auto output = at::empty({ctx.rank() == 0 ? 5 : 4});
    const std::vector<std::int64_t> sends{2, 2};
    const auto receives = ctx.rank() == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{2, 2};
    ctx.group().alltoall(output, input, receives, sends)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  ASSERT_EQ(report.differences.size(), 1u);
  ASSERT_FALSE(report.differences[0].fields.empty());
}

TEST(FirstCases, RankReturnsEarly_IsADeadlockWithItsName) {
  const auto report = run(4, [](RankContext& ctx) {
    auto tensor = at::ones({3});
    ctx.group().allreduce(tensor)->wait();
    if (ctx.rank() == 2) return;
    ctx.group().allreduce(tensor)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_NE(report.headline.find("rank 2"), std::string::npos) << report.headline;
  EXPECT_EQ(report.rank_lines[2].state, "returned");
  EXPECT_EQ(report.rank_lines[0].state, "blocked");
}

TEST(FirstCases, LateRank_IsATimeoutAfterThirtyMinutes) {
  const auto report = run(4, [](RankContext& ctx) {
    if (ctx.rank() == 1) exec::this_rank::sleep_for(std::chrono::minutes(45));
    auto tensor = at::ones({3});
    ctx.group().allreduce(tensor)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(report.end_time, kTimeZero + std::chrono::minutes(30));
}

// A loop around isCompleted() for a call that one rank never makes: nothing can change any more.
TEST(FirstCases, PollForACallThatARankLeavesOut_NamesCallAndRank) {
  const auto report = run(3, [](RankContext& ctx) {
    if (ctx.rank() == 2) return;
    auto tensor = at::ones({3});
    const auto work = ctx.group().allreduce(tensor);
    while (!work->isCompleted()) {
    }
  });
  EXPECT_EQ(report.verdict, Verdict::livelock);
  EXPECT_THAT(report.headline, StartsWith("rank 0 looks for the end of allreduce #1 on group \"world\" at "));
  EXPECT_THAT(report.headline, HasSubstr(", for which rank 2 never came: "));
  EXPECT_EQ(report.rank_lines[1].waits_for, std::vector{2});
  EXPECT_EQ(report.last_events.size(), 1u);
}

// A program that meets a timeout and gives up has dealt with it: that is no call that nobody waited for.
TEST(FirstCases, CaughtTimeout_IsSilent) {
  const auto report = run(2, [](RankContext& ctx) {
    if (ctx.rank() == 1) return;
    auto tensor = at::ones({3});
    EXPECT_THROW(ctx.group().allreduce(tensor)->wait(), TimeoutError);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(FirstCases, SwappedOrderOnTwoGroups_ShowsTheCycle) {
  const auto report = run(2, [](RankContext& ctx) {
    const auto a = ctx.new_group({0, 1}, "a");
    const auto b = ctx.new_group({0, 1}, "b");
    auto tensor = at::ones({3});
    const auto& first = ctx.rank() == 0 ? a : b;
    const auto& second = ctx.rank() == 0 ? b : a;
    first.allreduce(tensor)->wait();
    second.allreduce(tensor)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  ASSERT_EQ(report.wait_cycle.size(), 2u);
  EXPECT_NE(report.wait_cycle[0].find("\"a\""), std::string::npos) << report.wait_cycle[0];
  EXPECT_NE(report.wait_cycle[1].find("\"b\""), std::string::npos) << report.wait_cycle[1];
}

// A receive from any source takes what is there, in an order that the oracle chooses.
TEST(FirstCases, ReceiveFromAnySource_GetsEachMessageOnce) {
  const auto report = run(4, [](RankContext& ctx) {
    if (ctx.rank() != 0) {
      ctx.group().send(at::full({2}, ctx.rank()), 0)->wait();
      return;
    }
    int sum = 0;
    for (int i = 1; i < ctx.size(); ++i) {
      std::vector<at::Tensor> piece{at::zeros({2}, at::kLong)};
      auto work = ctx.group()->recvAnysource(piece, 0);
      work->wait();
      EXPECT_EQ(piece[0][1].item<int>(), work->sourceRank());
      sum += work->sourceRank();
    }
    EXPECT_EQ(sum, 1 + 2 + 3);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// The budget is spent while the scheduler itself is about to pick: the world ends, nothing else does.
TEST(FirstCases, StepBudget_EndsTheWorldWhereverItIsSpent) {
  for (std::uint64_t budget = 1; budget <= 12; ++budget) {
    WorldOptions options;
    options.ranks = 3;
    options.steps_max = budget;
    const auto report = World(options).run([](RankContext& ctx) {
      for (int i = 0; i < 10; ++i) ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::step_budget) << budget;
  }
}

}  // namespace
}  // namespace rehearse
