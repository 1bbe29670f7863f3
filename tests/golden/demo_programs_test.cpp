// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report explains its verdict. It names the caller of a helper, the exception that led to the failure, the
// group that a rank left out, and the call without a wait.
#include "demo_programs.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include "world_report.h"

namespace rehearse::golden {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

const std::string kLine = "demo_programs.cpp:[0-9]+ in demo::";

Report run_buffered(const World::Body& body, int ranks) {
  WorldOptions options;
  options.ranks = ranks;
  options.buffered_sends = true;
  return World(options).run(body);
}

TEST(CallersOfHelpers, CallLeftOut_NamesTheLineThatCalledTheHelper) {
  for (const int ranks : {2, 3, 8}) {
    const auto report = run_world(demo::leaves_out_a_helpers_call, ranks);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.rank_lines[0].where.text,
                MatchesRegex(kLine + "sync_mean, from " + kLine + "leaves_out_a_helpers_call"));
    ASSERT_EQ(report.last_events.size(), 2u);
    EXPECT_THAT(report.last_events[0], HasSubstr("in demo::sync_mean, from demo_programs.cpp:20 in demo::leaves"));
    EXPECT_THAT(report.last_events[1], HasSubstr("in demo::sync_mean, from demo_programs.cpp:22 in demo::leaves"));
  }
  expect_golden_report(run_world(demo::leaves_out_a_helpers_call, 3), "leaves_out_a_helpers_call");
}

TEST(CallersOfHelpers, DifferentCalls_NameBothCallers) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = run_world(demo::calls_a_helper_with_another_shape, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    ASSERT_EQ(report.differences.size(), 1u);
    EXPECT_THAT(report.differences[0].first.where.text,
                HasSubstr("sync_mean, from demo_programs.cpp:30 in demo::calls"));
    EXPECT_THAT(report.differences[0].second.where.text,
                HasSubstr("sync_mean, from demo_programs.cpp:28 in demo::calls"));
    ASSERT_EQ(report.call_places.size(), 1u);
    EXPECT_EQ(report.call_places[0].sequence, 1u);
    EXPECT_THAT(report.call_places[0].sides[1].where.text,
                HasSubstr("sync_mean, from demo_programs.cpp:28 in demo::calls"));
  }
}

TEST(Unwinding, CallInADestructor_NamesTheExceptionFirst) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::says_farewell_in_a_destructor, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_THAT(report.headline,
                StartsWith("rank 2 was unwinding an exception, 'disk is full', thrown at demo_programs.cpp:45 in "
                           "demo::says_farewell_in_a_destructor; rank 2 called barrier() while ranks 0-1 called "));
    const auto alone = run_world(demo::says_farewell_to_nobody, 3, seed);
    EXPECT_EQ(alone.verdict, Verdict::deadlock);
    EXPECT_THAT(alone.headline,
                MatchesRegex("rank 2 was unwinding an exception, 'disk is full', thrown at " + kLine +
                             "says_farewell_to_nobody; rank 2 waits in barrier #1 on group \"world\" at " + kLine +
                             "Farewell::~Farewell for ranks 0-1, which have ended and will never come"));
  }
  expect_golden_report(run_world(demo::says_farewell_in_a_destructor, 3), "says_farewell_in_a_destructor");
}

TEST(Unwinding, JoinableThread_NamesTheExceptionFirst) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::forgets_to_join, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_THAT(report.headline, MatchesRegex("rank 2 was unwinding an exception, 'disk is full', thrown at " + kLine +
                                              "forgets_to_join; rank 2: std::terminate\\(\\) was called.*"));
  }
}

TEST(NewGroupLeftOut, ComesFirst) {
  for (const int ranks : {3, 8}) {
    const auto report = run_world(demo::leaves_out_new_group, ranks);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_THAT(report.headline, MatchesRegex("new_group #1 \\(\"pair\"\\) at " + kLine +
                                              "leaves_out_new_group was called by ranks .* and "
                                              "never by rank 2"));
  }
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::leaves_out_new_group_and_uses_it, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline,
                MatchesRegex("new_group #1 \\(\"experts\"\\) at " + kLine +
                             "leaves_out_new_group_and_uses_it was called "
                             "by ranks 0-1 and never by rank 2; ranks 0 -> 2 -> 0 wait for each other: .*"));
  }
}

TEST(Remarks, DroppedWork_IsRemarkedWithItsLineUnderOk) {
  for (const int ranks : {2, 3, 8}) {
    const auto report = run_world(demo::forgets_to_wait, ranks);
    EXPECT_EQ(report.verdict, Verdict::ok);
    EXPECT_THAT(report.remarks, ElementsAre(MatchesRegex("nobody waited for allreduce #1 on group \"world\" of ranks "
                                                         "0-[0-9] at " +
                                                         kLine + "forgets_to_wait")));
  }
  expect_golden_report(run_world(demo::forgets_to_wait, 3), "forgets_to_wait");
}

TEST(Remarks, WithoutExplanation_TakeNoSecondRun) {
  for (const bool explain : {false, true}) {
    WorldOptions options;
    options.explain_remarks = explain;
    int bodies = 0;
    const auto report = World(options).run([&bodies](RankContext& ctx) {
      ++bodies;
      demo::forgets_to_wait(ctx);
    });
    EXPECT_EQ(bodies, explain ? 4 : 2);
    EXPECT_EQ(report.verdict, Verdict::ok);
    ASSERT_EQ(report.remarks.size(), 1u);
    EXPECT_EQ(report.remarks[0].find(" at demo_programs.cpp:") != std::string::npos, explain);
    ASSERT_EQ(report.places.size(), explain ? 1u : 0u);
    if (!explain) continue;
    EXPECT_TRUE(report.remarks[0].ends_with(report.places[0].text));
    EXPECT_TRUE(report.places[0].file.ends_with("/demo_programs.cpp"));
    EXPECT_EQ(sim::report_from_json(sim::to_json(report)).places, report.places);
  }
}

TEST(Remarks, OneOfSeveral_IsRemarkedWithItsRank) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::forgets_the_last_of_several, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::ok);
    EXPECT_THAT(report.remarks, ElementsAre(MatchesRegex("nobody waited for allreduce #3 on group \"world\" of rank 0 "
                                                         "at " +
                                                         kLine + "forgets_the_last_of_several")));
  }
}

TEST(Remarks, BarrierOrException_LeavesNothingToSay) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::waits_in_a_barrier_for_all, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::ok);
    EXPECT_THAT(report.remarks, IsEmpty());
    const auto failed = run_world(demo::drops_what_an_exception_leaves, 3, seed);
    EXPECT_EQ(failed.verdict, Verdict::rank_failed);
    EXPECT_THAT(failed.remarks, IsEmpty());
  }
}

TEST(CallCounts, SkippedStep_IsCountedByLineAndRank) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(demo::skips_a_step, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    ASSERT_FALSE(report.call_counts.empty());
    const auto& counts = report.call_counts[0];
    EXPECT_EQ(counts.group, "world");
    EXPECT_EQ(counts.where.text, "demo_programs.cpp:108 in demo::skips_a_step");
    ASSERT_EQ(counts.sides.size(), 2u);
    EXPECT_EQ(counts.sides[0].times, 5u);
    EXPECT_THAT(counts.sides[0].ranks, ElementsAre(0, 2, 3));
    EXPECT_EQ(counts.sides[1].times, 4u);
    EXPECT_THAT(counts.sides[1].ranks, ElementsAre(1));
  }
  expect_golden_report(run_world(demo::skips_a_step, 4), "skips_a_step");
}

TEST(CallCounts, UnderOk_WhereCallSitesWereAskedFor) {
  WorldOptions options;
  options.ranks = 3;
  const auto plain = World(options).run(demo::broadcasts_from_a_branch);
  EXPECT_EQ(plain.verdict, Verdict::ok);
  EXPECT_THAT(plain.call_counts, IsEmpty());
  options.call_sites = true;
  const auto report = World(options).run(demo::broadcasts_from_a_branch);
  EXPECT_EQ(report.verdict, Verdict::ok);
  ASSERT_EQ(report.call_counts.size(), 1u);
  EXPECT_THAT(report.call_counts[0].where.text, MatchesRegex(kLine + "broadcasts_from_a_branch"));
  ASSERT_EQ(report.call_counts[0].sides.size(), 2u);
  EXPECT_EQ(report.call_counts[0].sides[0].times, 3u);
  EXPECT_THAT(report.call_counts[0].sides[0].ranks, ElementsAre(0, 2));
  EXPECT_EQ(report.call_counts[0].sides[1].times, 2u);
  EXPECT_THAT(report.call_counts[0].sides[1].ranks, ElementsAre(1));
}

TEST(AsynchronousCalls, Deadlock_NamesTheCallsLineBesideTheWait) {
  const auto report = run_world(demo::waits_elsewhere_than_it_called, 2);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.rank_lines[0].where.text,
              MatchesRegex("demo_programs.cpp:118 in .*, called at demo_programs.cpp:116 in .*"));
}

TEST(BufferedSends, SendWithoutAReceive_IsReportedWithItsLine) {
  const auto report = run_buffered(demo::sends_into_a_buffer, 2);
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_THAT(report.headline, MatchesRegex("send #1 to rank 1 on group \"world\" of rank 0 at " + kLine +
                                            "sends_into_a_buffer was never received"));
  const auto beside = run_buffered(demo::sends_into_a_buffer_beside_a_hang, 3);
  EXPECT_EQ(beside.verdict, Verdict::deadlock);
  EXPECT_THAT(beside.headline,
              MatchesRegex("rank 1 receives from rank 2 at " + kLine +
                           "sends_into_a_buffer_beside_a_hang, but the send to it is "
                           "rank 0's send #1 to rank 1 on group \"world\" at " +
                           kLine + "sends_into_a_buffer_beside_a_hang; ranks 1 -> 2 -> 1 wait for each other: .*"));
}

TEST(BufferedSends, SendThatIsOver_IsNotWhatTheRankPollsFor) {
  for (const int ranks : {2, 3}) {
    const auto report = run_buffered(demo::polls_behind_a_buffered_send, ranks);
    EXPECT_EQ(report.verdict, Verdict::livelock);
    EXPECT_THAT(
        report.headline,
        MatchesRegex(
            "no rank receives rank 0's send #1 to rank 1 on group \"world\" at " + kLine +
            "polls_behind_a_buffered_send; rank 0 polls forever in store check of key \"received\", which is not "
            "set, at " +
            kLine + "polls_behind_a_buffered_send \\(.*"));
  }
}

// The end of the world unwinds the initialiser, so each seed starts it again.
TEST(SharedByRanks, StaticVariable_IsReportedAsInitialisedOnce) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = run_world(demo::waits_in_an_initialiser, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline, EndsWith("; the initialisation of a static variable happens once for all ranks of a "
                                          "simulation, but once in each process of a real job, where this deadlock "
                                          "does not occur"));
  }
}

TEST(AnySource, Receive_NamesTheSenderAndTheOtherSenders) {
  const auto report = run_world(demo::receives_from_anybody, 3);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  const auto text = sim::to_text(report);
  EXPECT_THAT(
      text,
      AnyOf(HasSubstr("recv_any_source #1 on group \"world\" (took the message of rank 1; rank 2 had sent, too)"),
            HasSubstr("recv_any_source #1 on group \"world\" (took the message of rank 2; rank 1 had sent, too)")));
}

TEST(Headlines, TextsThatBeginOrEndOddly_SayWhatWentWrong) {
  const auto first_empty = run_world(demo::throws_with_a_line_end_first, 2);
  EXPECT_EQ(first_empty.headline, "rank 1: cannot read shard 1");
  EXPECT_EQ(first_empty.rank_lines[1].doing, "cannot read shard 1\n  at byte 17");
  EXPECT_EQ(
      run_world(demo::throws_like_an_allocator, 2).headline,
      "rank 1: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
      "to allocate 4398046511104 bytes");
  EXPECT_EQ(run_world(demo::throws_like_torchscript, 2).headline,
            "rank 1: The size of tensor a (3) must match the size of tensor b (4)");
  EXPECT_EQ(run_world(demo::throws_nested, 2).headline,
            "rank 1: step 3 failed, caused by: cannot write shard 1, caused by: disk is full");
  expect_golden_report(run_world(demo::throws_nested, 2), "throws_nested");
}

TEST(Headlines, WhatATerminalObeys_IsShown) {
  const auto text = sim::to_text(run_world(demo::throws_what_a_terminal_obeys, 2));
  EXPECT_THAT(text, StartsWith("RANK FAILED: rank 1: \\x1b[2J\\x1b[31mred\\x07 \\xff\\xfe caf\xc3\xa9 \\xc2\\x9b1m\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Headlines, SplitsOfManyRanks_ThePairComesFirst) {
  const auto report = run_world(demo::sends_one_row_too_many, 12);
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_THAT(
      report.headline,
      StartsWith("ranks 1 and 9 disagree at #1 of group \"world\": rank 1 sends 3 elements to rank 9, which "
                 "expects 2; rank 1 called alltoall_base(float32[25], cpu, send [2, 2, 2, 2, 2, 2, 2, 2, ... 12 "
                 "in all], receive [2, 2, 2, 2, 2, 2, 2, 2, ... 12 in all]), rank 9 called "));
}

}  // namespace
}  // namespace rehearse::golden
