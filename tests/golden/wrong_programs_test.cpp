// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report leads from the mistake to the culprit and its line, and says only what is true.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world_report.h"
#include "wrong_programs.h"

namespace rehearse::golden {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;
using testing::StartsWith;
using namespace wrong_programs;

TEST(WrongPrograms, RankOversleeps_ItsSleepIsWhereTheUserCalledIt) {
  const auto report = run_world(oversleeps, 2);
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, StartsWith("rank 1 was still in a sleep at wrong_programs.cpp:"));
  EXPECT_THAT(report.headline, EndsWith("rank 0 waited for it in allreduce #1 on group \"world\" until the timeout at "
                                        "1800 s"));
  EXPECT_THAT(report.rank_lines[1].where, MatchesRegex("wrong_programs.cpp:.* in wrong_programs::oversleeps"));
  expect_golden_report(report, "oversleeps");
}

TEST(WrongPrograms, PeerThatDoesNotExist_TheErrorIsWhereTheUserCalled) {
  const auto report = run_world(sends_to_nobody, 2);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.rank_lines[1].where, MatchesRegex("wrong_programs.cpp:.* in wrong_programs::sends_to_nobody"));
  expect_golden_report(report, "sends_to_nobody");
}

TEST(WrongPrograms, KeyThatNobodySets_TheRankThatWaitsForItIsNamedFirst) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(waits_for_a_key_that_nobody_sets, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline, StartsWith("rank 2 waits for ever in store wait for key \"weights_ready\" at wrong_"));
    EXPECT_THAT(report.headline, EndsWith("; ranks 0-1,3 wait for it in barrier #2 on group \"world\""));
  }
  const auto at_rest = run_world(waits_for_a_key_that_nobody_sets, 4);
  for (const auto& line : at_rest.rank_lines) {
    EXPECT_EQ(line.at, kTimeZero + std::chrono::microseconds(20)) << "rank " << line.rank;
    EXPECT_THAT(line.where, MatchesRegex("wrong_programs.cpp:.*")) << "rank " << line.rank;
  }
  expect_golden_report(at_rest, "waits_for_a_key");
}

TEST(WrongPrograms, ChainOfWaits_TheRankAtItsEndIsNamedFirst) {
  const auto report = run_world(waits_in_a_chain, 4);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 2 waits for ever in a condition variable at wrong_programs.cpp:"));
  expect_golden_report(report, "waits_in_a_chain");
}

TEST(WrongPrograms, SwappedGroups_TheHeadlineNamesBothCalls) {
  const auto report = run_world(swaps_two_groups, 2);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline,
            "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"tensor_parallel\", rank 1 in "
            "allreduce #1 on group \"data_parallel\"");
  expect_golden_report(report, "swaps_two_groups");
}

TEST(WrongPrograms, PollForWhatNeverComes_IsALivelockOfThePoller) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(polls_for_a_key, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::livelock);
    EXPECT_THAT(report.headline, StartsWith("rank 1 polls for ever at wrong_programs.cpp:"));
    EXPECT_THAT(report.headline, EndsWith("; ranks 0,2 wait for it in barrier #1 on group \"world\""));
  }
  expect_golden_report(run_world(polls_for_a_key, 3), "polls_for_a_key");
}

// Time passes for the poller, so that it might do something else later: the others' patience ends first.
TEST(WrongPrograms, PollWithPauses_IsATimeoutThatNamesThePoller) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(polls_for_a_key_with_pauses, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_THAT(report.headline, MatchesRegex("rank 1 was still .* at wrong_programs.cpp:.*; ranks 0,2 waited for it in "
                                              "barrier #1 on group \"world\" until the timeout at 1800 s"));
  }
  expect_golden_report(run_world(polls_for_a_key_with_pauses, 3), "polls_for_a_key_with_pauses");
}

TEST(WrongPrograms, ExceptionOfThreeLines_StaysInOnePiece) {
  const auto report = run_world(throws_three_lines, 2);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_EQ(report.headline, "rank 1: cannot read shard 1");
  expect_golden_report(report, "throws_three_lines");
}

TEST(WrongPrograms, OneCallTooMany_NamesTheRankThatMadeIt) {
  const auto report = run_world(makes_a_call_too_many, 4);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 0 waits in allreduce #2 on group \"world\" at wrong_programs.cpp:"));
  EXPECT_THAT(report.headline, EndsWith(" for ranks 1-3, which have ended and will never come"));
  expect_golden_report(report, "makes_a_call_too_many");
}

// What destructors do while a rank fails is no progress of the job.
TEST(WrongPrograms, CleanUpAfterAHang_IsStillADeadlock) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(cleans_up_after_a_hang, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline, "barrier #1 on group \"world\": rank 0 has ended and will never come");
  }
}

}  // namespace
}  // namespace rehearse::golden
