// SPDX-License-Identifier: BSD-3-Clause
// Contract: if ranks hold rows of a tensor, check_step() names the ranks whose rows are wrong, and no others. It
// compares the ranks that it is told, when all of them have come.
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include "checked_world.h"

namespace checks_test {
namespace {

// The rows of a matrix by hand. Rank 1 steps twice as far.
TEST(Steps, OfShardsByHand_AreThoseOfTheWhole) {
  const auto train = [](double factor) {
    return run(
        [factor](RankContext& ctx) {
          const auto start = at::arange(12, at::kDouble).view({4, 3});
          auto shard = start.narrow(0, 2 * ctx.rank(), 2).clone(), one = start.clone();
          shard.sub_(ctx.rank() == 1 ? factor : 1);
          ctx.check_step({{"w", shard, false, checks::RowsOfWhole{{4, 3}, 2 * ctx.rank()}}}, {{"w", one}},
                         [&] { one.sub_(1); });
        },
        2);
  };
  EXPECT_EQ(train(1).verdict, Verdict::ok) << train(1).headline;
  EXPECT_EQ(train(2).headline,
            in_steps("the step of \"w\" is right in the rows of rank 0, but those of rank 1 are 2 times as large"));
}

// Two replicas of two shards. One wrong rank makes their wholes differ; if all ranks of a shard are wrong, each is
// named.
TEST(Steps, OfShardsOnSeveralRanks_NameTheWrongRanks) {
  const auto train = [](const std::set<int>& wrong) {
    return run([&](RankContext& ctx) {
      auto one = at::ones({4}, at::kDouble), own = at::ones({2}, at::kDouble);
      own.sub_(wrong.contains(ctx.rank()) ? 0.2 : 0.1);
      ctx.check_step({{"w", own, false, checks::RowsOfWhole{{4}, 2 * (ctx.rank() % 2)}}}, {{"w", one}},
                     [&] { one.sub_(0.1); });
    });
  };
  EXPECT_EQ(train({}).verdict, Verdict::ok);
  const std::vector<std::set<int>> cases{{0}, {1}, {2}, {3}, {1, 3}};
  for (const auto& wrong : cases) {
    const auto report = train(wrong);
    EXPECT_EQ(report.verdict, Verdict::check_failed);
    EXPECT_EQ(report.findings.front().ranks, std::vector<int>(wrong.begin(), wrong.end())) << report.headline;
    EXPECT_EQ(report.findings.front().details, std::vector<std::string>());
  }
  EXPECT_EQ(train({1}).headline, in_steps("the step of \"w\" is right in the rows of ranks 0,2-3, but those of rank 1 "
                                          "are 2 times as large"));
}

// Without a rank there is no step of all ranks.
TEST(Steps, OfARankThatNeverComes_AreReportedAsNotMade) {
  const auto report = run([](RankContext& ctx) {
    const auto value = at::ones({2});
    if (ctx.rank() != 3) ctx.check_step({{"w", value * ctx.rank()}}, {{"w", value.clone()}}, [] {});
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.remarks, std::vector<std::string>{"check #1 of \"steps\" was not made: rank 3 did not come"});
}

// Two groups train apart. The lowest rank of each makes the step of one process.
TEST(Steps, OfSomeRanks_AreTheirOwn) {
  const auto report = run([](RankContext& ctx) {
    const bool is_low = ctx.rank() < 2;
    auto value = at::ones({2}), one = value.clone();
    for (int step = 0; step < 3; ++step) {
      value.mul_(is_low ? 2 : 3);
      ctx.check_step({{"w", value}}, {{"w", one}},
                     [&] {
                       EXPECT_EQ(ctx.rank() % 2, 0);
                       one.mul_(is_low ? 2 : 3);
                     },
                     {.name = is_low ? "low" : "high", .ranks = is_low ? std::vector{0, 1} : std::vector{2, 3}});
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("high"), 3u);
}

}  // namespace
}  // namespace checks_test
