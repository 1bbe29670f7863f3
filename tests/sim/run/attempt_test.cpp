// SPDX-License-Identifier: BSD-3-Clause
#include "run/attempt.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/job/group.h>
#include <rehearse_internal/exec/interrupt.h>

// Contract: the same functions run worlds for the command and for check(). They run a world, run it again and compare,
// or replay a log.

namespace rehearse::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kOtherWay = "the replay differs from the log: ";

World::Body barriers(int count) {
  return [count](RankContext& ctx) {
    for (int i = 0; i < count; ++i) ctx.group().barrier()->wait();
  };
}

AttemptOptions of_seed(std::uint64_t seed) {
  AttemptOptions options{.program = "barriers", .world = {.ranks = 3, .seed = seed}, .keep_calls = true};
  options.world.keep_all_events = true;
  return options;
}

RunLog log_of(const Attempt& attempt) {
  RunLog log;
  log.program = attempt.report.program;
  log.seed = attempt.report.seed;
  log.finished = {attempt.report, attempt.path.decisions};
  return log;
}

TEST(Attempt, Report_BeginsWithWhatWasAskedFor) {
  const auto attempt = run_once(of_seed(7), barriers(2));
  EXPECT_EQ(attempt.report.verdict, Verdict::ok);
  EXPECT_EQ(attempt.report.program, "barriers");
  EXPECT_EQ(attempt.report.seed, 7u);
  EXPECT_EQ(attempt.report.schedule, "random");
  EXPECT_EQ(attempt.events().size(), 6u);
  EXPECT_EQ(attempt.path.calls.calls.size(), 6u);
  EXPECT_EQ(attempt.path.decisions.size(), attempt.report.decisions);
}

TEST(Attempt, SameSeedTwice_TakesTheSameWay) {
  auto first = run_once(of_seed(7), barriers(3));
  EXPECT_TRUE(took_same_way(first, run_once(of_seed(7), barriers(3))));
  EXPECT_EQ(first.report.verdict, Verdict::ok);
}

TEST(Attempt, OtherBodyTheSecondTime_IsNondeterminismOfTheFirst) {
  auto first = run_once(of_seed(7), barriers(3));
  EXPECT_FALSE(took_same_way(first, run_once(of_seed(7), barriers(2))));
  EXPECT_EQ(first.report.verdict, Verdict::nondeterminism);
  EXPECT_THAT(first.report.headline, StartsWith("two runs of seed 7 differ, so "));
}

TEST(Attempt, OtherResultsTheSecondTime_AreNondeterminism) {
  const auto gives = [](float value) {
    return [value](RankContext& ctx) { ctx.result("loss", at::full({2}, value)); };
  };
  auto first = run_once(of_seed(7), gives(1));
  EXPECT_TRUE(took_same_way(first, run_once(of_seed(7), gives(1))));
  EXPECT_FALSE(took_same_way(first, run_once(of_seed(7), gives(2))));
  EXPECT_EQ(first.report.verdict, Verdict::nondeterminism);
  EXPECT_THAT(first.report.headline, HasSubstr("rank 0's result \"loss\" is not"));
}

TEST(Attempt, InterruptedTheSecondTime_SaysThatNothingWasCompared) {
  auto first = run_once(of_seed(7), barriers(3));
  Attempt second;
  second.report.verdict = Verdict::interrupted;
  second.report.headline = "by SIGINT";
  EXPECT_FALSE(took_same_way(first, second));
  EXPECT_EQ(first.report.verdict, Verdict::interrupted);
  EXPECT_EQ(first.report.headline, "in the second run, before it could be compared with the first: by SIGINT");
}

TEST(LogReplay, SameBody_IsTheSameRun) {
  const auto log = log_of(run_once(of_seed(7), barriers(3)));
  Report again;
  EXPECT_EQ(replay_log(log,
                       [&](Oracle& answers) -> const Report& {
                         return again = run_once(of_seed(8), barriers(3), &answers).report;  // only the log decides
                       }),
            "");
  EXPECT_EQ(again.identity, log.finished->report.identity);
}

TEST(LogReplay, OtherBodies_SayWhereTheyPart) {
  const auto log = log_of(run_once(of_seed(7), barriers(3)));
  for (const int barriers_now : {2, 4}) {
    Report again;
    const auto other_way = replay_log(log, [&](Oracle& answers) -> const Report& {
      return again = run_once(of_seed(7), barriers(barriers_now), &answers).report;
    });
    EXPECT_THAT(other_way, StartsWith(kOtherWay)) << barriers_now;
    EXPECT_THAT(other_way, HasSubstr("decision ")) << barriers_now;
  }
}

TEST(LogReplay, SameDecisionsOtherIdentity_NamesBoth) {
  auto log = log_of(run_once(of_seed(7), barriers(3)));
  const auto identity = log.finished->report.identity;
  log.finished->report.identity = 1;
  Report again;
  const auto other_way = replay_log(log, [&](Oracle& answers) -> const Report& {
    return again = run_once(of_seed(7), barriers(3), &answers).report;
  });
  EXPECT_EQ(other_way, fmt::format("{}the same {} decisions, but other steps, operations or times in between "
                                   "(identity {:016x}, the log's is 0000000000000001)",
                                   kOtherWay, log.finished->decisions.size(), identity));
}

// Rank 0 requests the end of the run before its barrier `at`, as Ctrl-C does.
World::Body interrupted_barriers(int at) {
  return [at](RankContext& ctx) {
    for (int i = 0;; ++i) {
      if (ctx.rank() == 0 && i == at) exec::request_interrupt();
      ctx.group().barrier()->wait();
    }
  };
}

TEST(LogReplay, OfAnInterruptedRun_EndsWhereTheLogDoes) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const auto log = log_of(run_once(of_seed(seed), interrupted_barriers(5)));
    exec::clear_interrupt();
    ASSERT_EQ(log.finished->report.verdict, Verdict::interrupted);
    Report again;
    EXPECT_EQ(replay_log(log,
                         [&](Oracle& answers) -> const Report& {
                           return again = run_once(of_seed(seed), interrupted_barriers(-1), &answers).report;
                         }),
              "");
    EXPECT_TRUE(ended_as_log(log, again));
    EXPECT_EQ(again.identity, log.finished->report.identity);
    EXPECT_EQ(again.headline, log.finished->report.headline);
  }
}

TEST(LogReplay, OfAnInterruptedRun_ThatEndsBefore_IsAnotherWay) {
  const auto log = log_of(run_once(of_seed(7), interrupted_barriers(5)));
  exec::clear_interrupt();
  Report again;
  EXPECT_THAT(replay_log(log,
                         [&](Oracle& answers) -> const Report& {
                           return again = run_once(of_seed(7), barriers(2), &answers).report;
                         }),
              StartsWith(kOtherWay));
}

// The log is that of the first run, which completed.
TEST(LogReplay, OfARunWhoseSecondWasInterrupted_IsTheFirstRun) {
  auto first = run_once(of_seed(7), barriers(3));
  const auto identity = first.report.identity;
  Attempt second;
  second.report.verdict = Verdict::interrupted;
  ASSERT_FALSE(took_same_way(first, second));
  const auto log = log_of(first);
  Report again;
  EXPECT_EQ(replay_log(log,
                       [&](Oracle& answers) -> const Report& {
                         return again = run_once(of_seed(7), barriers(3), &answers).report;
                       }),
            "");
  EXPECT_EQ(again.verdict, Verdict::ok);
  EXPECT_EQ(again.identity, identity);
}

TEST(LogReplay, InterruptedRun_IsNotCompared) {
  const auto log = log_of(run_once(of_seed(7), barriers(3)));
  Report interrupted;
  interrupted.verdict = Verdict::interrupted;
  EXPECT_EQ(replay_log(log, [&](Oracle&) -> const Report& { return interrupted; }), "");
}

}  // namespace
}  // namespace rehearse::sim
