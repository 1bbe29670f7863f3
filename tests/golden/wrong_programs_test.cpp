// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report leads from the mistake to the culprit and its line, and states only what is true.
#include <chrono>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "world_report.h"
#include "wrong_programs.h"

namespace rehearse::golden {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;
using namespace wrong_programs;

TEST(WrongPrograms, RankOversleeps_ItsSleepIsWhereTheUserCalledIt) {
  const auto report = run_world(oversleeps, 2);
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, StartsWith("rank 1 was still in a sleep at wrong_programs.cpp:"));
  EXPECT_THAT(report.headline, EndsWith("rank 0 waited for it in allreduce #1 on group \"world\" until the timeout at "
                                        "1800 s; rank 1 never called allreduce #1 on group \"world\""));
  EXPECT_THAT(report.rank_lines[1].where.text, MatchesRegex("wrong_programs.cpp:.* in wrong_programs::oversleeps"));
  expect_golden_report(report, "oversleeps");
}

TEST(WrongPrograms, PeerThatDoesNotExist_TheErrorIsWhereTheUserCalled) {
  const auto report = run_world(sends_to_nobody, 2);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.rank_lines[1].where.text,
              MatchesRegex("wrong_programs.cpp:.* in wrong_programs::sends_to_nobody"));
  expect_golden_report(report, "sends_to_nobody");
}

TEST(WrongPrograms, UnsetKey_TheRankThatWaitsForItIsNamedFirst) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(waits_for_a_key_that_nobody_sets, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(
        report.headline,
        StartsWith("rank 2 waits forever in store wait for key \"weights_ready\", which is not set, at wrong_"));
    EXPECT_THAT(report.headline, EndsWith("; ranks 0-1,3 wait for it in barrier #2 on group \"world\""));
  }
  const auto at_rest = run_world(waits_for_a_key_that_nobody_sets, 4);
  for (const auto& line : at_rest.rank_lines) {
    EXPECT_EQ(line.at, kTimeZero + std::chrono::microseconds(20)) << "rank " << line.rank;
    EXPECT_THAT(line.where.text, MatchesRegex("wrong_programs.cpp:.*")) << "rank " << line.rank;
  }
  expect_golden_report(at_rest, "waits_for_a_key");
}

TEST(WrongPrograms, KeyThatIsSetBehindABarrier_IsACycleThroughTheStore) {
  for (const int ranks : {2, 3, 8}) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const auto report = run_world(sets_a_key_behind_a_barrier, ranks, seed);
      EXPECT_EQ(report.verdict, Verdict::deadlock);
      EXPECT_THAT(
          report.headline,
          StartsWith("rank 0 waits forever in store wait for key \"weights_ready\", which is not set, at wrong_"));
      const std::string line = "wrong_programs.cpp:[0-9]+ in wrong_programs::sets_a_key_behind_a_barrier";
      const auto first = ranks == 2
                             ? "rank 0 waits for rank 1 \\(store wait for key \"weights_ready\"\\) at " + line
                             : "rank 0 waits in store wait for key \"weights_ready\" at " + line +
                                   "; any other rank could end this wait, but rank 1, for example, is blocked, too";
      EXPECT_THAT(report.wait_cycle,
                  ElementsAre(MatchesRegex(first),
                              MatchesRegex("rank 1 waits for rank 0 \\(barrier #1 on group \"world\"\\) at " + line)));
    }
  }
}

TEST(WrongPrograms, CycleThroughGroupsMessagesAndTheStore_IsNamed) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(waits_around_a_store, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(
        report.wait_cycle,
        ElementsAre(StartsWith("rank 0 waits in store wait for key \"block_wanted\" at wrong_programs.cpp:246 in "),
                    StartsWith("rank 1 waits for rank 0 (recv #1 from rank 0 on group \"world\") at wrong_")));
  }
  expect_golden_report(run_world(waits_around_a_store, 3), "waits_around_a_store");
}

TEST(WrongPrograms, ChainOfWaits_TheRankAtItsEndIsNamedFirst) {
  const auto report = run_world(waits_in_a_chain, 4);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 2 waits forever in a condition variable at wrong_programs.cpp:"));
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
    EXPECT_THAT(
        report.headline,
        StartsWith(
            "rank 1 polls forever in store check of key \"shard_written\", which is not set, at wrong_programs.cpp:"));
    EXPECT_THAT(report.headline, EndsWith("; ranks 0,2 wait for it in barrier #1 on group \"world\""));
  }
  expect_golden_report(run_world(polls_for_a_key, 3), "polls_for_a_key");
}

// The polling rank pauses between polls, so time passes, and the rank might still go on. The other ranks time out
// first.
TEST(WrongPrograms, PollWithPauses_IsATimeoutThatNamesThePoller) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(polls_for_a_key_with_pauses, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_THAT(report.headline,
                MatchesRegex("rank 1 was still polling in store check of key \"shard_written\", which was not set, at "
                             "wrong_programs.cpp:.*; ranks 0,2 waited for it in barrier #1 on group \"world\" until "
                             "the timeout at 1800 s; rank 1 never called barrier #1 on group \"world\""));
    EXPECT_THAT(report.rank_lines[1].doing, EndsWith("store check of key \"shard_written\""));
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

// The work of destructors while a rank fails does not count as progress of the job.
TEST(WrongPrograms, CleanUpAfterAHang_IsStillADeadlock) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(cleans_up_after_a_hang, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline, "barrier #1 on group \"world\": rank 0 has ended and will never come");
  }
}

TEST(WrongPrograms, CallLeftOut_ThePlacesLeadToIt) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(leaves_out_one_of_equal_calls, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    ASSERT_EQ(report.call_places.size(), 2u);
    const auto& first = report.call_places[0];
    EXPECT_EQ(first.group, "world");
    EXPECT_EQ(first.sequence, 4u);
    ASSERT_EQ(first.sides.size(), 2u);
    EXPECT_THAT(first.sides[0].ranks, ElementsAre(0, 1, 3));
    EXPECT_THAT(first.sides[0].where.text, MatchesRegex("wrong_programs.cpp:[0-9]+ in wrong_programs::sum, from "
                                                        "wrong_programs.cpp:110 in .*leaves_out_one_of_equal_calls"));
    EXPECT_THAT(first.sides[1].ranks, ElementsAre(2));
    EXPECT_THAT(first.sides[1].where.text, MatchesRegex("wrong_programs.cpp:[0-9]+ in wrong_programs::sum, from "
                                                        "wrong_programs.cpp:108 in .*leaves_out_one_of_equal_calls"));
    EXPECT_EQ(report.call_places[1].sequence, 5u);
  }
  expect_golden_report(run_world(leaves_out_one_of_equal_calls, 4), "leaves_out_one_of_equal_calls");
}

TEST(WrongPrograms, BranchOnTheRank_IsReportedOnceAndBlamesNoRank) {
  const auto report = run_world(branches_on_the_rank, 3);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, "broadcast #3 on group \"world\": rank 1 has ended and will never come");
  ASSERT_EQ(report.call_places.size(), 2u);
  EXPECT_EQ(report.call_places[0].sequence, 1u);
  EXPECT_THAT(report.call_places[0].sides[0].ranks, ElementsAre(1, 2));
  EXPECT_EQ(report.call_places[1].sequence, 3u);
  EXPECT_THAT(report.call_places[1].sides[0].ranks, ElementsAre(0));
  EXPECT_THAT(report.call_places[1].sides[1].ranks, ElementsAre(2));
}

TEST(WrongPrograms, PlacesOfARunWithoutFailure_AreNotCompared) {
  WorldOptions options;
  options.call_sites = true;
  const auto report = World(options).run([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      ctx.group().barrier()->wait();
    } else {
      ctx.group().barrier()->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(report.call_places, IsEmpty());
}

TEST(WrongPrograms, TimeoutThatIsCaught_IsReportedWithTheErrorThrownInstead) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(hides_a_timeout, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_EQ(report.headline,
              "rank 0: step 1 failed; before that, at 1800 s, rank 0 timed out in allreduce #1 on group \"world\" at "
              "wrong_programs.cpp:130 in wrong_programs::hides_a_timeout: rank 1 has ended without it");
    EXPECT_EQ(report.rank_lines[0].doing, "step 1 failed");
  }
  expect_golden_report(run_world(hides_a_timeout, 2), "hides_a_timeout");
  EXPECT_EQ(run_world(hides_a_timeout_of_the_store, 2).headline,
            "rank 0: cannot load; before that, at 1800 s, rank 0 timed out in store wait for key \"weights_ready\"");
}

// A rank whose later calls complete has recovered from the timeout.
TEST(WrongPrograms, TimeoutLongBefore_IsNotReported) {
  const auto report = run_world(
      [](RankContext& ctx) {
        auto loss = at::ones({1});
        if (ctx.rank() == 1) exec::this_rank::sleep_for(std::chrono::minutes(20));
        const auto work = ctx.group().allreduce(loss);
        if (ctx.rank() == 0) {
          EXPECT_THROW(work->wait(std::chrono::minutes(10)), TimeoutError);
        }
        work->wait();
        if (ctx.rank() == 0) throw std::runtime_error("cannot write");
      },
      2);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_EQ(report.headline, "rank 0: cannot write");
}

TEST(WrongPrograms, LockAroundACollective_IsADeadlockOfHolderAndWaiter) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(locks_around_a_collective, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(
        report.headline,
        "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"world\", rank 1 in a mutex "
        "held by rank 0; ranks share this mutex only because a simulation runs them in one process: with a process "
        "for each rank, this deadlock does not occur");
  }
  expect_golden_report(run_world(locks_around_a_collective, 3), "locks_around_a_collective");
}

TEST(WrongPrograms, MutexLockedTwice_SaysSo) {
  const auto report = run_world(locks_twice, 3);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline,
              StartsWith("rank 1 waits forever in a mutex that rank 1 holds already at wrong_programs.cpp:"));
  EXPECT_THAT(report.headline, EndsWith("; ranks 0,2 wait for it in barrier #1 on group \"world\""));
  expect_golden_report(report, "locks_twice");
}

TEST(WrongPrograms, ReceiveFromTheWrongRank_NamesTheSendWithoutAReceive) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(receives_from_the_wrong_rank, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(
        report.headline,
        StartsWith("rank 1 receives from rank 2 at wrong_programs.cpp:166 in "
                   "wrong_programs::receives_from_the_wrong_rank, but the send to it is rank 0's send #1 to rank 1 "
                   "on group \"world\" at wrong_programs.cpp:165 in "
                   "wrong_programs::receives_from_the_wrong_rank; ranks 1 -> 2 -> 1 wait for each other: "));
    EXPECT_EQ(report.rank_lines[1].doing,
              "recv #1 from rank 2 on group \"world\" (nothing has been sent; rank 0 has sent instead)");
  }
  expect_golden_report(run_world(receives_from_the_wrong_rank, 3), "receives_from_the_wrong_rank");
}

TEST(WrongPrograms, ReceivesFromTheOtherSide_CountTheOtherSends) {
  const auto report = run_world(receives_from_the_other_side, 4);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(
      report.headline,
      MatchesRegex("rank 2 receives from rank 1 at wrong_programs.cpp:[0-9]+ in "
                   "wrong_programs::receives_from_the_other_side, but "
                   "the send to it is rank 3's send #1 to rank 2 on group \"world\" at wrong_programs.cpp:[0-9]+ in "
                   "wrong_programs::receives_from_the_other_side; 2 more sends are not received; ranks 0 -> .*"));
}

TEST(WrongPrograms, KeyThatIsSetTooLate_NamesTheLateRank) {
  const auto report = run_world(sets_a_key_too_late, 2);
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, StartsWith("rank 0: wait timeout after 1800000ms, keys: weights_ready (no rank has set: "
                                          "weights_ready); rank 1 was still in a sleep at wrong_programs.cpp:"));
}

// The heartbeat only sleeps again and again, so it cannot end the hang.
TEST(WrongPrograms, HeartbeatBesideAHang_IsStillADeadlock) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(returns_early_beside_a_heartbeat, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline, "barrier #1 on group \"world\": rank 0 has ended and will never come");
  }
}

// A timed wait in a condition variable ends without an error. So the waiting rank might have gone on.
TEST(WrongPrograms, PauseInAConditionVariable_IsStillOnTheWay) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(pauses_in_a_condition_variable, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_THAT(report.headline, StartsWith("rank 1 was still in a condition variable at wrong_programs.cpp:"));
    EXPECT_THAT(report.headline,
                EndsWith("ranks 0,2 waited for it in barrier #1 on group \"world\" until the timeout at "
                         "1800 s; rank 1 never called barrier #1 on group \"world\""));
  }
}

TEST(WrongPrograms, WatchdogBesideACycle_IsStillADeadlock) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(swaps_two_groups_beside_a_watchdog, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline, StartsWith("ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group "
                                            "\"tensor_parallel\", rank 1 in allreduce #1 on group \"data_parallel\""));
  }
}

TEST(WrongPrograms, LooksForACollectiveWithPauses_NamesIt) {
  const auto report = run_world(polls_for_a_collective_with_pauses, 2);
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_THAT(report.headline,
              MatchesRegex("allreduce #1 on group \"world\" was called by rank 0 at wrong_programs.cpp:[0-9]+ in "
                           "wrong_programs::polls_for_a_collective_with_pauses and never by rank 1; it timed out, and "
                           "the program never asked for its result"));
}

TEST(WrongPrograms, WaitInAThread_IsShownWithItsOwnPlace) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(waits_for_a_key_in_a_thread, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline, MatchesRegex("rank 1 waits forever in store wait for key \"weights_ready\", which is "
                                              "not set, at wrong_programs.cpp:.* in "
                                              ".*lambda; rank 0 waits for it in barrier #1 on group \"world\""));
  }
}

TEST(WrongPrograms, TriesAgainForEver_EndsWithTheRankThatNeverCame) {
  const auto report = run_world(tries_again_for_ever, 2);
  EXPECT_EQ(report.verdict, Verdict::livelock);
  EXPECT_THAT(
      report.headline,
      MatchesRegex("rank 0 repeats its wait for allreduce #20001 on group \"world\" forever, at wrong_programs.cpp:.*: "
                   "rank 1 has ended without that call \\(20000 timeouts in a row while nothing else happened\\)"));
}

// The headline has the call that ended the world, not the call given up before.
TEST(WrongPrograms, SecondTimeout_IsTheReportedOne) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(gives_up_two_calls, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_THAT(report.headline, StartsWith("rank 1 was still in a sleep at wrong_programs.cpp:"));
    EXPECT_THAT(report.headline,
                EndsWith("; ranks 0,2 waited for it in barrier #2 on group \"world\" until the timeout at 20 s; "
                         "rank 1 never called barrier #2 on group \"world\""));
  }
}

TEST(WrongPrograms, KeyThatAWorkerWaitsFor_IsNamed) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(waits_for_a_worker_that_waits_for_a_key, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline,
                MatchesRegex("rank 1 waits forever in store wait for key \"shard_7\", which is not set, at "
                             "wrong_programs.cpp:.* in .*lambda; rank 0 waits for it in barrier #1 on "
                             "group \"world\""));
    EXPECT_THAT(report.rank_lines[1].doing, StartsWith("a condition variable"));
    EXPECT_THAT(report.rank_lines[1].where.text,
                MatchesRegex("wrong_programs.cpp:.* in wrong_programs::waits_for_a_worker_that_waits_for_a_key"));
  }
}

}  // namespace
}  // namespace rehearse::golden
