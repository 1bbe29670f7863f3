// SPDX-License-Identifier: BSD-3-Clause
// Contract: all ranks of a group get the contributions of all, in rank order. If some ranks cannot compile and others
// can, all ranks throw the same error. The user's calls on the group are not affected.
#include "compile/compiler_collectives/compiler_collectives.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/errors.h>
#include <rehearse/fakes/lone_group.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::compiler {
namespace {

using namespace std::chrono_literals;

const CollectiveLabel kLabel{"f", "train.cpp:7"};

InputFacts facts_of(int rank) {
  InputFacts facts;
  for (int i = 0; i <= rank % 3; ++i) {
    facts.push_back({.source = "x" + std::to_string(i), .kind = InputFact::Kind::Int, .int_value = rank});
  }
  return rank == 1 ? InputFacts() : facts;
}

void expect_ok(const Report& report) { EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report); }

class CompilerCollectivesTest : public testing::TestWithParam<int> {
 protected:
  Report run(const World::Body& body, std::uint64_t seed = 1) const {
    return World({.ranks = GetParam(), .seed = seed}).run(body);
  }
};
INSTANTIATE_TEST_SUITE_P(Sizes, CompilerCollectivesTest, testing::Values(1, 2, 3, 8, 16));

TEST_P(CompilerCollectivesTest, Exchange_GivesAllRanksFactsByRank) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    expect_ok(run(
        [](RankContext& ctx) {
          CompilerCollectives collectives(ctx.group());
          for (int round = 0; round < 3; ++round) {
            const auto all = collectives.exchange(facts_of(ctx.rank() + round), kLabel);
            ASSERT_EQ(all.size(), static_cast<std::size_t>(ctx.size()));
            for (int rank = 0; rank < ctx.size(); ++rank) {
              EXPECT_EQ(all[static_cast<std::size_t>(rank)], facts_of(rank + round));
            }
          }
        },
        seed));
  }
}

TEST_P(CompilerCollectivesTest, LeastAbility_IsTheLeastOfAllRanks) {
  expect_ok(run([](RankContext& ctx) {
    CompilerCollectives collectives(ctx.group());
    for (const auto each : {Ability::run_eagerly, Ability::compile, Ability::serve}) {
      const bool is_last = ctx.rank() == ctx.size() - 1;
      EXPECT_EQ(collectives.least(each, kLabel), each);
      EXPECT_EQ(collectives.least(is_last ? each : Ability::serve, kLabel), each);
      EXPECT_EQ(collectives.least(is_last ? Ability::serve : each, kLabel), ctx.size() == 1 ? Ability::serve : each);
    }
  }));
}

TEST_P(CompilerCollectivesTest, Commit_GivesAllHashesOrTheErrorOfOne) {
  expect_ok(run([](RankContext& ctx) {
    CompilerCollectives collectives(ctx.group());
    const auto hashes = collectives.commit(GraphHash{static_cast<std::uint64_t>(ctx.rank() * 7)}, kLabel);
    for (int rank = 0; rank < ctx.size(); ++rank) {
      EXPECT_EQ(hashes.at(static_cast<std::size_t>(rank)).value, static_cast<std::uint64_t>(rank * 7));
    }
    EXPECT_THAT(collectives.commit(ErrorText{"no graph"}, kLabel), testing::IsEmpty());  // all ranks have an error
    if (ctx.size() == 1) return;
    const int last = ctx.size() - 1;
    const auto mine = ctx.rank() == last ? CompileOutcome(ErrorText{"no graph"}) : CompileOutcome(GraphHash{1});
    EXPECT_THAT([&] { collectives.commit(mine, kLabel); },
                testing::ThrowsMessage<CompileError>("rank " + std::to_string(last) +
                                                     " could not compile f for the call at train.cpp:7: no graph"));
    EXPECT_EQ(collectives.least(Ability::serve, kLabel), Ability::serve);  // the collectives still work
  }));
}

// Ranks arrive at different times, and make calls on the group itself in between.
TEST_P(CompilerCollectivesTest, UsersCalls_KeepTheirOrder) {
  expect_ok(run([](RankContext& ctx) {
    CompilerCollectives collectives(ctx.group());
    const auto work = ctx.group().allreduce(at::full({1}, ctx.rank()));
    exec::this_rank::sleep_for(ctx.rank() * 1us);
    if (ctx.rank() % 2 == 0) ctx.group().barrier();
    collectives.exchange(facts_of(ctx.rank()), kLabel);
    if (ctx.rank() % 2 == 1) ctx.group().barrier();
    work->wait();
    EXPECT_EQ(ctx.group()->getBackend(c10::kCPU)->getSequenceNumberForGroup(), 2u);
  }));
}

TEST_P(CompilerCollectivesTest, ObjectsOfOneGroup_ShareACommunicator) {
  expect_ok(run([](RankContext& ctx) {
    CompilerCollectives first(ctx.group()), second(ctx.group());
    EXPECT_EQ((ctx.rank() % 2 == 0 ? first : second).least(Ability::serve, kLabel), Ability::serve);
    EXPECT_EQ((ctx.rank() % 3 == 0 ? first : second).least(Ability::serve, kLabel), Ability::serve);
  }));
}

TEST(CompilerCollectivesTest, GroupsOfSomeRanks_ExchangeAmongThemselves) {
  expect_ok(World({.ranks = 5}).run([](RankContext& ctx) {
    const std::vector<std::vector<int>> members{{4, 2}, {1, 3, 0}};
    for (const auto& ranks : members) {
      const auto group = ctx.new_group(ranks, "");
      if (!group) continue;
      CompilerCollectives collectives(group);
      const auto all = collectives.exchange(facts_of(ctx.rank()), kLabel);
      ASSERT_EQ(all.size(), ranks.size());
      for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(all[i], facts_of(ranks[i]));
      const auto mine = ctx.rank() >= 3 ? CompileOutcome(ErrorText{"none"}) : CompileOutcome(GraphHash{1});
      EXPECT_THAT([&] { collectives.commit(mine, kLabel); },
                  testing::ThrowsMessage<CompileError>(testing::StartsWith(ranks[0] == 4 ? "rank 4 " : "rank 3 ")));
    }
  }));
}

TEST(CompilerCollectivesTest, DifferentFunctions_AreAMismatchThatNamesThem) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    CompilerCollectives(ctx.group()).exchange({}, {ctx.rank() == 0 ? "f" : "g", ""});
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_THAT(report.headline, testing::AllOf(testing::HasSubstr("inputs of f"), testing::HasSubstr("inputs of g")));
}

TEST(CompilerCollectivesTest, DifferentSteps_AreAMismatch) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    CompilerCollectives collectives(ctx.group());
    ctx.rank() == 0 ? void(collectives.exchange({}, kLabel)) : void(collectives.commit(GraphHash{1}, kLabel));
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
}

TEST(CompilerCollectivesTest, LoneRank_GetsItsOwnFactsForAllRanks) {
  CompilerCollectives collectives(fakes::lone_group(1000, 1024));
  const auto all = collectives.exchange(facts_of(2), kLabel);
  ASSERT_EQ(all.size(), 1024u);
  EXPECT_EQ(all[0], facts_of(2));
  EXPECT_EQ(all[1023], facts_of(2));
  EXPECT_EQ(collectives.least(Ability::serve, kLabel), Ability::serve);
  EXPECT_EQ(collectives.commit(GraphHash{3}, kLabel), std::vector<GraphHash>(1024, GraphHash{3}));
}

TEST(CompilerCollectivesTest, WithoutAGroup_IsRefused) {
  EXPECT_THROW(CompilerCollectives{nullptr}, CompileError);
  const auto bare = c10::make_intrusive<c10d::ProcessGroup>(nullptr, 0, 2);
  EXPECT_ANY_THROW(CompilerCollectives(bare).least(Ability::serve, kLabel));
}

}  // namespace
}  // namespace rehearse::compiler
