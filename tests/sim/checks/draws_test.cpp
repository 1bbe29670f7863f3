// SPDX-License-Identifier: BSD-3-Clause
// Contract: generators that should stand at one place, or should not, are told apart, and by how much.
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include "checked_world.h"

namespace checks_test {
namespace {

using rehearse::checks::Draws;

TEST(Draws, SameOnAllRanks_IsSilent) {
  const auto report = run([](RankContext& ctx) {
    for (int step = 0; step < 3; ++step) {
      at::rand({5});
      at::randn({3});
      ctx.check_draws();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("draws"), 3u);
}

TEST(Draws, MoreOnOneRank_AreCounted) {
  const auto report = run([](RankContext& ctx) {
    ctx.check_draws();
    at::rand({ctx.rank() == 3 ? 27 : 10});
    ctx.check_draws();
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.headline, "generators of ranks differ in check #2: rank 3 has drawn 17 numbers more than ranks 0-2");
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{3});
}

TEST(Draws, FewerOnOneRank_AreCounted) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() != 1) at::rand({1000});
    ctx.check_draws();
  });
  EXPECT_EQ(report.headline,
            "generators of ranks differ in check #1: rank 1 has drawn 1000 numbers fewer than ranks 0,2-3");
}

TEST(Draws, AnotherSeed_IsNamed) {
  const auto report = run([](RankContext& ctx) {
    ctx.generator().set_current_seed(ctx.rank() == 2 ? 8 : 7);
    ctx.check_draws();
  });
  EXPECT_EQ(report.headline, "generators of ranks differ in check #1: rank 2 was seeded with 8, ranks 0-1,3 with 7");
}

TEST(Draws, ThatShouldDiffer) {
  const auto seeded = [](int of_two) {
    return [=](RankContext& ctx) {
      ctx.generator().set_current_seed(ctx.rank() == 2 ? static_cast<std::uint64_t>(of_two) : 100u + ctx.rank());
      ctx.check_draws(Draws::different);
    };
  };
  EXPECT_EQ(run(seeded(102)).verdict, Verdict::ok);
  const auto report = run(seeded(101));
  EXPECT_EQ(report.headline,
            "generators of ranks are alike in check #1: ranks 1-2 draw the same numbers (seeded with 101)");
  EXPECT_EQ(report.findings.at(0).ranks, (std::vector<int>{1, 2}));
}

// The default: every rank begins with the world's seed, as after torch.manual_seed() in each process.
TEST(Draws, ThatShouldDiffer_WithoutSeedsOfTheirOwn) {
  const auto report = run([](RankContext& ctx) {
    at::rand({ctx.rank() + 1});
    ctx.check_draws(Draws::different);
  });
  EXPECT_EQ(report.headline,
            "generators of ranks are alike in check #1: ranks 0-3 draw from one sequence, at different places (seeded "
            "with 1)");
  EXPECT_TRUE(is_said(report, "seed each rank with a number of its own"));
}

}  // namespace
}  // namespace checks_test
