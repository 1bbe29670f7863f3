// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>
#include <rehearse_internal/sim/run_log.h>

#include "check_helpers.h"

// Contract: a check of many seeds stops at the first that fails. Its seeds take turns among strategies, unless the test
// or the environment says otherwise, and the failure has a line that repeats the seed alone.
namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Environment, Runs_AreSeedsFromTheOptionsOn) {
  const Variable runs("REHEARSE_RUNS", "3");
  int worlds = 0;
  check({.ranks = 1, .seed = 7}, [&](RankContext&) { ++worlds; });
  EXPECT_EQ(worlds, 3);
}

TEST(Environment, Runs_StopAtTheFirstThatFails) {
  const Variable runs("REHEARSE_RUNS", "10");
  int worlds = 0;
  const auto failures =
      failures_of([&] { check({.ranks = 1, .seed = 7}, [&](RankContext&) { EXPECT_LT(++worlds, 3); }); });
  EXPECT_EQ(worlds, 3);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), HasSubstr("replay: REHEARSE_SCHEDULE=pct+time REHEARSE_SEED=0x9 "));
}

// With REHEARSE_RUNS or many runs, the seeds of a check() take turns as those of a sweep, but REHEARSE_SEED alone has
// the test's own options. So the line that replays a seed sets REHEARSE_SCHEDULE, too, if the run was scheduled
// otherwise.
TEST(Environment, Runs_TakeTurnsUnlessTheTestSaysOtherwise) {
  const auto schedule_of = [](std::uint64_t seed, std::optional<bool> preempt, std::uint64_t runs = 1) {
    const auto failures = failures_of([&] {
      check({.ranks = 2, .seed = seed, .runs = runs, .preempt = preempt},
            [](RankContext& ctx) { ctx.expect(false, "the schedule is told"); });
    });
    return failures.empty() ? std::string() : message(failures[0]);
  };
  EXPECT_THAT(schedule_of(4, {}), HasSubstr("schedule=random\n"));
  EXPECT_THAT(schedule_of(4, {}, 2), HasSubstr("schedule=pct:2+time+preempt\n"));
  const Variable runs("REHEARSE_RUNS", "2");
  EXPECT_THAT(schedule_of(1, {}), HasSubstr("schedule=in_order\n"));
  EXPECT_THAT(schedule_of(7, {}), HasSubstr("\nreplay: REHEARSE_SCHEDULE=random+time REHEARSE_SEED=0x7 "));
  EXPECT_THAT(schedule_of(8, true), HasSubstr("+preempt\n"));
  const Variable preempt("REHEARSE_PREEMPT", "0");
  EXPECT_THAT(schedule_of(8, true), Not(HasSubstr("+preempt\n")));
  const Variable schedule("REHEARSE_SCHEDULE", "pos+time");
  EXPECT_THAT(schedule_of(8, true), HasSubstr("schedule=pos+time\n"));
}

// Seed 11 fails in its turn, and its number of steps is the most that seeds 7 to 10 have made.
TEST(Environment, Runs_CountTheChoicesOfEarlierSeeds_AndReplay) {
  const std::string name = "Environment.Runs_CountTheChoicesOfEarlierSeeds_AndReplay";
  const auto fails_in = [&](int last) {
    int worlds = 0;
    return failures_of([&] {
      check({.ranks = 3, .seed = 7, .runs = 9}, [&](RankContext& ctx) {
        worlds += ctx.rank() == 0 ? 1 : 0;
        ctx.group().barrier()->wait();
        ctx.expect(worlds < last, "the end");
      });
    });
  };
  const auto failures = fails_in(5);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), testing::ContainsRegex("schedule=pct:2:[1-9][0-9]*.time.preempt identity"));
  EXPECT_THAT(message(failures[0]), HasSubstr("seed=11\n"));
  auto log = sim::read_run_log("rehearse-out/" + name + "/run.rlog");
  log.program = name + "#2";
  sim::write_run_log("rehearse-out/" + name + "/fifth.rlog", log);
  const Variable replay("REHEARSE_REPLAY", "rehearse-out/" + name + "/fifth.rlog");
  const auto again = fails_in(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_THAT(message(again[0]), HasSubstr("seed=11\n"));
}

}  // namespace
}  // namespace rehearse
