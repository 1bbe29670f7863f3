// SPDX-License-Identifier: BSD-3-Clause
// Contract: reports of failed runs show what happened to the store's keys: the key that exists instead of the awaited
// one, the rank that deleted a key, and the ranks that found a key at a line at which another rank found none. This
// holds for any schedule.
#include <chrono>
#include <stdexcept>
#include <string>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/fault.h>
#include <rehearse/sim/world.h>

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace store_history_test {
namespace {

using namespace rehearse;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

constexpr const char* kLine = "store_history_test.cpp:[0-9]+ in .*lambda";

Report run(const World::Body& body, std::uint64_t seed = 1, int ranks = 3) {
  return World({.ranks = ranks, .seed = seed, .preempt = seed % 2 == 0}).run(body);
}

TEST(StoreHistory, AKeyOfAnotherName_IsShownInItsPlace) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("attempt/1/id", "port 1234");
    ctx.store()->wait({ctx.rank() == 2 ? "attempt/0/id" : "attempt/1/id"});
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.remarks,
              ElementsAre(MatchesRegex("rank 2: waited for store key \"attempt/0/id\", which nobody set; there is "
                                       "\"attempt/1/id\" \\(port 1234\\), changed last by rank 0 at " +
                                       std::string(kLine))));
}

TEST(StoreHistory, AKeyThatIsAskedForInVain_IsShownIfItIsNearlyTheSame) {
  const auto ask = [](const std::string& name) {
    return run([name](RankContext& ctx) {
      if (ctx.rank() == 0) ctx.store()->set("stage_2/ready", "1");
      while (ctx.rank() == 2 && !ctx.store()->check({name})) ctx.compute(std::chrono::seconds(1));
      ctx.group().barrier()->wait();
    });
  };
  EXPECT_THAT(ask("stage2/ready").remarks,
              ElementsAre(MatchesRegex("rank 2: asked for store key \"stage2/ready\", which nobody set; there is "
                                       "\"stage_2/ready\" \\(1\\), changed last by rank 0 at .*")));
  EXPECT_THAT(ask("stage_2/over").remarks, IsEmpty());
}

TEST(StoreHistory, ACounterAndBytes_AreReadable) {
  const auto report = run([](RankContext& ctx) {
    ctx.store()->add("barrier:1", 2);
    ctx.store()->wait({"barrier:1:done"});
  });
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_THAT(report.remarks[0],
              MatchesRegex("ranks 0-2: waited for .*; there is \"barrier:1\" \\(6\\), changed last by "
                           "rank [0-2] at .*"));
  const auto bytes = run([](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("key_1", std::vector<std::uint8_t>{0, 1, 2});
    if (ctx.rank() == 1) ctx.store()->get("key_2");
  });
  EXPECT_THAT(bytes.remarks, ElementsAre(testing::HasSubstr("there is \"key_1\" (3 bytes)")));
}

TEST(StoreHistory, KeysThatAreNotAlike_AreNotShown) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("saved", "yes");
    if (ctx.rank() == 1) ctx.store()->wait({"stop serving"});
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.remarks, IsEmpty());
}

// The line of the fault tells.
TEST(StoreHistory, AKeyThatAFaultLost_IsNotThere) {
  const auto report =
      World({.ranks = 2, .faults = {parse_fault("lose_key key=epoch-0/data")}}).run([](RankContext& ctx) {
        if (ctx.rank() == 0) ctx.store()->set("epoch-0/data", "1");
        if (ctx.rank() == 1) ctx.store()->wait({"epoch_0/data"});
      });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST(StoreHistory, ADeletedKey_NamesTheRankThatDeletedIt) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      ctx.store()->set("go", "1");
      ctx.store()->deleteKey("go");
    }
    ctx.group().barrier()->wait();
    if (ctx.rank() == 1) ctx.store()->get("go");
  });
  EXPECT_THAT(report.remarks, ElementsAre(MatchesRegex("rank 1: waited for store key \"go\", which rank 0 deleted at " +
                                                       std::string(kLine))));
}

TEST(StoreHistory, ADeletedKeyForWhichARankPolls_NamesTheRankThatDeletedIt) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      ctx.store()->set("go", "1");
      ctx.store()->deleteKey("go");
    }
    ctx.group().barrier()->wait();
    while (ctx.rank() == 1 && !ctx.store()->check({"go"})) continue;
  });
  EXPECT_EQ(report.verdict, Verdict::livelock);
  EXPECT_THAT(report.remarks, ElementsAre(MatchesRegex("rank 1: waited for store key \"go\", which rank 0 deleted at " +
                                                       std::string(kLine))));
}

// Some ranks find a key and others do not, so they take different branches.
TEST(StoreHistory, OtherAnswersInOneLine_AreReported) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 1) ctx.store()->set("run-1", "here");
    const bool found = ctx.store()->check({"run-" + std::to_string(ctx.rank())});
    if (found) ctx.group().broadcast(at::ones({1}))->wait();
    if (!found) ctx.group().allreduce(at::ones({1}))->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  ASSERT_EQ(report.remarks.size(), 2u);
  EXPECT_THAT(report.remarks[0], MatchesRegex("rank 0: store check at " + std::string(kLine) +
                                              " did not find \"run-0\", where rank 1 found \"run-1\""));
}

TEST(StoreHistory, RankThatLooksAndSets_IsNotReported) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 0 && !ctx.store()->check({"init"})) ctx.store()->set("init", "1");
    if (ctx.rank() == 1) ctx.store()->wait({"init"});
    ctx.group().barrier()->wait();
    if (ctx.rank() == 2) throw std::runtime_error("enough");
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.remarks, IsEmpty());
}

// Two ranks look before either sets the key. The report says of each rank that the other one set the key later,
// whichever of them set it first.
TEST(StoreHistory, TwoRanksThatLookedTooEarly_AreBothReported) {
  for (const int first : {0, 1}) {
    const auto report = run(
        [first](RankContext& ctx) {
          const bool leads = !ctx.store()->check({"leader"});
          ctx.group().barrier()->wait();
          if (ctx.rank() != first) ctx.group().barrier()->wait();
          if (leads) ctx.store()->set("leader", std::to_string(ctx.rank()));
          if (ctx.rank() == first) ctx.group().barrier()->wait();
          ctx.group().barrier()->wait();
          if (leads && ctx.rank() == 1) throw std::runtime_error("two ranks lead");
          ctx.group().barrier()->wait();
        },
        1, 2);
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    const auto told = [](int rank, int other) {
      return MatchesRegex("rank " + std::to_string(rank) + ": store check at " + kLine +
                          " did not find \"leader\"; rank " + std::to_string(other) + " set it later at " + kLine);
    };
    EXPECT_THAT(report.remarks, UnorderedElementsAre(told(0, 1), told(1, 0)));
  }
}

TEST(StoreHistory, OfCompareSets_TheFirstHasChangedTheKey) {
  const auto report = run([](RankContext& ctx) {
    if (ctx.rank() == 1) ctx.store()->compareSet("leader_1", "", "yes");
    ctx.group().barrier()->wait();
    ctx.store()->compareSet("leader_1", "", "yes");
    ctx.store()->compareSet("leader_3", "", "");  // only reads
    ctx.group().barrier()->wait();
    if (ctx.rank() == 0) ctx.store()->wait({"leader_2"}, std::chrono::milliseconds(0));
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.remarks, ElementsAre(testing::HasSubstr("there is \"leader_1\" (yes), changed last by rank 1")));
}

TEST(StoreHistory, OtherBytesOfTheSameLength_AreAChange) {
  const std::vector<std::uint8_t> old{0, 1, 2}, now{0, 1, 3};
  const auto report = run([&](RankContext& ctx) {
    if (ctx.rank() == 1) ctx.store()->set("state_1", old);
    ctx.group().barrier()->wait();
    if (ctx.rank() == 0) ctx.store()->compareSet("state_1", old, now);
    ctx.group().barrier()->wait();
    if (ctx.rank() == 2) ctx.store()->wait({"state_2"});
  });
  EXPECT_THAT(report.remarks,
              ElementsAre(testing::HasSubstr("there is \"state_1\" (3 bytes), changed last by rank 0")));
}

// On every schedule, the second run, which finds the call sites, repeats the first run and ends.
TEST(StoreHistory, OnManySchedules_TheRaceIsReported) {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto report = run(
        [](RankContext& ctx) {
          if (ctx.rank() == 0) ctx.store()->set("master", "node-0");
          if (ctx.rank() == 1 && !ctx.store()->check({"master"})) ctx.group().allreduce(at::ones({1}))->wait();
          ctx.group().barrier()->wait();
        },
        seed, 2);
    if (report.verdict == Verdict::ok) {
      EXPECT_THAT(report.remarks, IsEmpty());
      continue;
    }
    ++failed;
    EXPECT_THAT(report.remarks,
                ElementsAre(MatchesRegex("rank 1: store check at " + std::string(kLine) +
                                         " did not find \"master\"; rank 0 set it later at " + std::string(kLine))))
        << seed;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 40);
}

}  // namespace
}  // namespace store_history_test
