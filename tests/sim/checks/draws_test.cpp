// SPDX-License-Identifier: BSD-3-Clause
// Contract: the check finds generators that should be at the same position but are not, and says by how much they
// differ. It also finds generators that should differ but are at the same position.
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

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
  EXPECT_EQ(report.headline,
            "the random generators of ranks differ in check #2: rank 3 has drawn 17 numbers more than ranks 0-2");
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{3});
  const auto details = details_of(report);
  ASSERT_EQ(details.size(), 3u);
  EXPECT_TRUE(details[0].starts_with("aten::rand(size=[27]) at draws_test.cpp:")) << details[0];
  EXPECT_TRUE(details[0].ends_with(": once on rank 3, never on rank 0")) << details[0];
  EXPECT_TRUE(details[1].starts_with("aten::rand(size=[10]) at draws_test.cpp:")) << details[1];
  EXPECT_TRUE(details[1].ends_with(": never on rank 3, once on rank 0")) << details[1];
}

// Rank 2 runs a line that the other ranks do not run. The check blames that line, although a later line draws, too.
// Only draws since the previous check count.
TEST(Draws, MoreOnOneRank_AreLaidToTheirLine) {
  int odd_line = 0;
  const auto report = run([&](RankContext& ctx) {
    if (ctx.rank() == 2) {
      at::randn({4});
    } else {
      at::randn({4});
    }
    for (int step = 0; step < 3; ++step) {
      at::randn({4});
      odd_line = __LINE__ + 1;
      if (ctx.rank() == 2 && step == 1) at::randn({4});
      at::randn({4});
      ctx.check_draws();
    }
  });
  EXPECT_TRUE(report.headline.starts_with("the random generators of ranks differ in check #2: rank 2 has drawn "))
      << report.headline;
  const auto details = details_of(report);
  ASSERT_EQ(details.size(), 2u);
  const auto odd = "aten::randn(size=[4]) at draws_test.cpp:" + std::to_string(odd_line) + " in ";
  EXPECT_TRUE(details[0].starts_with(odd)) << details[0];
  EXPECT_TRUE(details[0].ends_with(": once on rank 2, never on rank 0")) << details[0];
}

// Draws before the seed was set no longer count.
TEST(Draws, OfAGeneratorThatWasSet_CountFromThere) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0) at::rand({100});
    ctx.generator().set_current_seed(7);
    at::rand({10});
    if (ctx.rank() == 1) ctx.generator().set_current_seed(7);
    ctx.check_draws();
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  const auto details = details_of(report);
  ASSERT_EQ(details.size(), 4u);
  EXPECT_TRUE(details[0].starts_with("the generator was set before the check at draws_test.cpp:")) << details[0];
  EXPECT_TRUE(details[0].ends_with(": once on rank 1, never on rank 0")) << details[0];
  EXPECT_TRUE(details[1].starts_with("the generator was set before aten::rand at draws_test.cpp:")) << details[1];
  EXPECT_TRUE(details[2].starts_with("aten::rand(size=[10]) at draws_test.cpp:")) << details[2];
  EXPECT_TRUE(details[2].ends_with(": never on rank 1, once on rank 0")) << details[2];
}

// Operators with a generator of the program's own do not count.
TEST(Draws, FromElsewhere_AreNone) {
  const auto report = run([](RankContext& ctx) {
    at::rand({ctx.rank() == 3 ? 5 : 6}, at::make_generator<at::CPUGeneratorImpl>(7));
    at::rand({ctx.rank() == 3 ? 0 : 6}, at::make_generator<at::CPUGeneratorImpl>(7));
    if (ctx.rank() == 3) at::randperm(18);
    ctx.check_draws();
  });
  EXPECT_EQ(report.headline,
            "the random generators of ranks differ in check #1: rank 3 has drawn 17 numbers more than ranks 0-2");
  const auto details = details_of(report);
  ASSERT_EQ(details.size(), 2u);
  EXPECT_TRUE(details[0].starts_with("aten::randperm(n=18) at draws_test.cpp:")) << details[0];
}

// A draw that bypasses the dispatcher is blamed on the line of the next operator.
TEST(Draws, ByNoOperator) {
  const auto report = run([](RankContext& ctx) {
    at::rand({1});
    auto generator = at::detail::getDefaultCPUGenerator();
    if (ctx.rank() == 3) at::check_generator<at::CPUGeneratorImpl>(generator)->random();
    at::ones({1});
    ctx.check_draws();
  });
  EXPECT_TRUE(is_said(report, "code that is no operator, or another thread, before aten::ones at draws_test.cpp:"));
}

TEST(Draws, FewerOnOneRank_AreCounted) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() != 1) at::rand({1000});
    ctx.check_draws();
  });
  EXPECT_EQ(report.headline,
            "the random generators of ranks differ in check #1: rank 1 has drawn 1000 numbers fewer than ranks 0,2-3");
}

TEST(Draws, AnotherSeed_IsNamed) {
  const auto report = run([](RankContext& ctx) {
    ctx.generator().set_current_seed(ctx.rank() == 2 ? 8 : 7);
    ctx.check_draws();
  });
  EXPECT_EQ(report.headline,
            "the random generators of ranks differ in check #1: rank 2 was seeded with 8, ranks 0-1,3 with 7");
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
            "the random generators of ranks are alike in check #1: ranks 1-2 draw the same numbers (seeded with 101)");
  EXPECT_EQ(report.findings.at(0).ranks, (std::vector<int>{1, 2}));
}

// A mesh of 2 x 2. The ranks of a tensor parallel pair need the same dropout, the pairs different ones.
TEST(Draws, OfAMeshWithOneSeed_AreFound) {
  const auto train = [](bool one_seed) {
    return run([one_seed](RankContext& ctx) {
      const int pair = ctx.rank() / 2, place = ctx.rank() % 2;
      ctx.generator().set_current_seed(one_seed ? 100u : 100u + static_cast<unsigned>(pair));
      at::rand({3});
      ctx.check_draws(Draws::same, {.name = pair == 0 ? "pair 0" : "pair 1", .ranks = {2 * pair, 2 * pair + 1}});
      ctx.check_draws(Draws::different, {.name = place == 0 ? "data 0" : "data 1", .ranks = {place, place + 2}});
    });
  };
  const auto right = train(false);
  EXPECT_EQ(right.verdict, Verdict::ok) << right.headline;
  EXPECT_EQ(right.checks.at("pair 1") + right.checks.at("data 1"), 2u);
  const auto report = train(true);
  EXPECT_NE(report.headline.find("draw the same numbers (seeded with 100)"), std::string::npos) << report.headline;
}

// The default: every rank begins with the world's seed, as after torch.manual_seed() in each process.
TEST(Draws, ThatShouldDiffer_WithoutSeedsOfTheirOwn) {
  const auto report = run([](RankContext& ctx) {
    at::rand({ctx.rank() + 1});
    ctx.check_draws(Draws::different);
  });
  EXPECT_EQ(report.headline,
            "the random generators of ranks are alike in check #1: ranks 0-3 draw from the same sequence, at different "
            "positions (seeded with 1)");
  EXPECT_TRUE(is_said(report, "give each rank its own seed"));
}

}  // namespace
}  // namespace checks_test
