// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_report.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>

#include "cli/merge/merge_folder.h"
#include "report/writers/culprits.h"

// Contract: the merge of the ranks' own reports has one verdict, chosen by the order in merged_report.h, and the
// culprits of that verdict. The merge adds up the ranks' operations and checks, and repeats nothing.
namespace rehearse::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

VirtualTime at_ms(int ms) { return kTimeZero + std::chrono::milliseconds(ms); }

// The report of rank `rank` of 3, which returned.
Report report_of(int rank) {
  Report report;
  report.headline = "rank " + std::to_string(rank) + " of 3 returned after 2 ms of real time";
  report.program = "train";
  report.ranks = 3;
  report.seed = 7;
  report.schedule = "real";
  report.operations = 2;
  report.end_time = at_ms(2 + rank);
  report.rank_lines = {{rank, RankOutcome::returned, at_ms(2 + rank), "", "", "", {}}};
  report.checks = {{"the sum is right", 1}};
  report.remarks = {"nobody waited for broadcast #1"};
  return report;
}

Report failed(int rank, Verdict verdict, std::string doing, std::vector<int> waits_for = {}, int ms = 5) {
  Report report = report_of(rank);
  report.verdict = verdict;
  report.headline = "rank " + std::to_string(rank) + ": " + doing;
  report.rank_lines = {{rank, RankOutcome::failed, at_ms(ms), std::move(doing), "", "", std::move(waits_for)}};
  return report;
}

const char* const kSecondCall = "allreduce #2 on group \"world\": Timed out waiting 3000ms";

Report merged(std::vector<RankReport> ranks) { return merged_report(ranks); }

TEST(MergedReport, LastEvents_AreThoseOfAllRanks) {
  auto first = report_of(0), second = report_of(1);
  first.last_events = {"900 us  rank 0  barrier #1", "1.5 ms  rank 0  allreduce #2  (not complete)"};
  second.last_events = {"1.2 ms  rank 1  barrier #1", "2 s  rank 1  send #1"};
  EXPECT_THAT(merged({{first, ""}, {second, ""}}).last_events,
              ElementsAre("900 us  rank 0  barrier #1", "1.2 ms  rank 1  barrier #1",
                          "1.5 ms  rank 0  allreduce #2  (not complete)", "2 s  rank 1  send #1"));
  second.last_events.assign(9, "3 ms  rank 1  send #1");
  const auto many = merged({{first, ""}, {second, ""}}).last_events;
  EXPECT_EQ(many.size(), 10u);
  EXPECT_EQ(many.front(), "1.5 ms  rank 0  allreduce #2  (not complete)");
}

TEST(MergedReport, AllReturned_IsOkWithTheSumOfAll) {
  const auto report = merged({{report_of(0), ""}, {report_of(1), ""}, {report_of(2), ""}});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.headline, "3 ranks returned after 4 ms of real time");
  EXPECT_EQ(report.operations, 6u);
  EXPECT_EQ(report.checks.at("the sum is right"), 3u);
  EXPECT_THAT(report.remarks, ElementsAre("nobody waited for broadcast #1"));
  EXPECT_EQ(report.rank_lines.size(), 3u);
  EXPECT_EQ(report.program, "train");
  EXPECT_EQ(report.seed, 7u);
  EXPECT_THAT(sim::culprits_of(report), IsEmpty());
}

TEST(MergedReport, Transports_AreReportedOnce_OrForEachRank) {
  auto first = report_of(0), second = report_of(1), third = report_of(2);
  EXPECT_EQ(merged({{first, ""}, {second, ""}, {third, ""}}).transport, "");
  first.transport = third.transport = "gloo (tcp on eth0)";
  EXPECT_EQ(merged({{first, ""}, {second, ""}, {third, ""}}).transport, "gloo (tcp on eth0)");
  second.transport = "gloo (tcp on lo)";
  EXPECT_EQ(merged({{first, ""}, {second, ""}, {third, ""}}).transport,
            "gloo (tcp on eth0) of ranks 0,2, gloo (tcp on lo) of rank 1");
}

TEST(MergedReport, AMismatch_OutweighsTimeOutsThatFollow_AndIsReportedOnce) {
  auto mismatch = failed(0, Verdict::mismatch, "allreduce #1 on group \"world\" (the ranks' calls do not match)", {1});
  Difference known;
  known.group = "world";
  known.sequence = 1;
  known.first = {{0}, "allreduce(sum)", ""};
  known.second = {{1}, "broadcast(root=0)", ""};
  mismatch.differences = {known};
  auto knows_more = mismatch;
  knows_more.headline = "rank 1 called broadcast while ranks 0,2 called allreduce";
  knows_more.rank_lines[0].rank = 2;
  knows_more.differences[0].first.ranks = {0, 2};
  const auto report = merged({{mismatch, ""}, {failed(1, Verdict::timeout, kSecondCall, {0}), ""}, {knows_more, ""}});
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(report.headline, "rank 1 called broadcast while ranks 0,2 called allreduce");
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_THAT(report.differences[0].first.ranks, ElementsAre(0, 2));
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, AnException_IsItsRanksForWhichOthersOnlyWaited) {
  const auto report = merged({{failed(0, Verdict::timeout, kSecondCall, {1}), ""},
                              {failed(1, Verdict::rank_failed, "the dataset is empty"), ""},
                              {failed(2, Verdict::rank_failed, "gloo/transport/tcp/pair.cc:547 closed"), ""}});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_EQ(report.headline, "rank 1: the dataset is empty");
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, ARankWithoutAReport_HasCrashed_AndOthersSayWhereTheyWaitedForIt) {
  const auto report = merged({{failed(0, Verdict::timeout, kSecondCall, {1}), ""},
                              {std::nullopt, "its process was ended by SIGKILL (Killed)"},
                              {failed(2, Verdict::timeout, kSecondCall, {1}), ""}});
  EXPECT_EQ(report.verdict, Verdict::crashed);
  EXPECT_EQ(
      report.headline,
      "rank 1: left no report: its process was ended by SIGKILL (Killed); ranks 0,2 waited for it in allreduce #2 on "
      "group \"world\"");
  EXPECT_EQ(report.rank_lines[1].state, RankOutcome::failed);
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, TimeOutsForARankThatReturned_AreADeadlock) {
  const auto report = merged({{failed(0, Verdict::timeout, kSecondCall, {1}), ""},
                              {report_of(1), ""},
                              {failed(2, Verdict::timeout, kSecondCall, {1}), ""}});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, "allreduce #2 on group \"world\": rank 1 has ended and will never come");
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, RanksThatWaitForEachOther_AreADeadlock) {
  const auto report = merged({{failed(0, Verdict::timeout, "recv #1 on group \"world\"", {1}), ""},
                              {failed(1, Verdict::timeout, "recv #2 on group \"world\"", {0}), ""},
                              {report_of(2), ""}});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.wait_cycle.size(), 2u);
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(0, 1));
}

TEST(MergedReport, ARankThatCameTooLate_IsATimeoutAndItsFault) {
  const auto report = merged({{failed(0, Verdict::timeout, kSecondCall, {1}, 3000), ""},
                              {failed(1, Verdict::timeout, kSecondCall, {0, 2}, 8000), ""},
                              {failed(2, Verdict::timeout, kSecondCall, {1}, 3001), ""}});
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(
      report.headline,
      "rank 1 came to allreduce #2 on group \"world\" only when the timeout at 3 s had ended the wait of ranks 0,2");
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, ARankThatMightStillHaveCome_IsATimeoutAndItsFault) {
  Report under_way = failed(1, Verdict::rank_failed, "gloo/transport/tcp/pair.cc:547 closed", {}, 8000);
  under_way.rank_lines[0].where = "train.cpp:7 in step";
  const auto report = merged({{failed(0, Verdict::timeout, kSecondCall, {1}, 3000), ""},
                              {under_way, ""},
                              {failed(2, Verdict::timeout, kSecondCall, {1}, 3001), ""}});
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(report.headline,
            "rank 1 was still running at train.cpp:7 in step; ranks 0,2 waited for it in allreduce #2 on group "
            "\"world\" until the timeout at 3 s");
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

// The report of a rank that knows the job outcome, and thus the state of all ranks.
Report report_with_outcome(Verdict verdict, const char* headline, int rank) {
  Report report = report_of(rank);
  report.verdict = verdict;
  report.headline = headline;
  report.rank_lines.clear();
  for (int each = 0; each < 3; ++each)
    report.rank_lines.push_back({each, RankOutcome::stopped, at_ms(1), "", "", "", {}});
  report.rank_lines[0] = {0, RankOutcome::blocked, at_ms(1), "allreduce #1 on group \"world\"", "", "", {1}};
  report.rank_lines[static_cast<std::size_t>(rank)].where = "train.cpp:" + std::to_string(rank);
  return report;
}

TEST(MergedReport, OfRanksWithAJobOutcome_HasItsVerdictAndTheirCallSites) {
  const auto* const told = "rank 1 called broadcast while ranks 0,2 called allreduce";
  const auto report = merged({{report_with_outcome(Verdict::mismatch, told, 0), ""},
                              {report_with_outcome(Verdict::mismatch, told, 1), ""},
                              {report_with_outcome(Verdict::mismatch, told, 2), ""}});
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(report.headline, told);
  EXPECT_EQ(report.rank_lines[0].where.text, "train.cpp:0");
  EXPECT_EQ(report.rank_lines[2].where.text, "train.cpp:2");
  EXPECT_EQ(report.operations, 6u);
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, OfRanksWithAJobOutcome_BeginsWithTheCrashRecord) {
  Report dead = failed(1, Verdict::crashed, "SIGSEGV (Segmentation fault)");
  dead.headline = "rank 1 ended the process by SIGSEGV (Segmentation fault)";
  const auto* const told = "rank 1: no message came from it for 5 s";
  const auto report = merged({{report_with_outcome(Verdict::crashed, told, 0), ""},
                              {dead, ""},
                              {report_with_outcome(Verdict::crashed, told, 2), ""}});
  EXPECT_EQ(report.verdict, Verdict::crashed);
  EXPECT_EQ(report.headline,
            "rank 1 ended the process by SIGSEGV (Segmentation fault); rank 0 waited for it in allreduce #1 on group "
            "\"world\"");
  EXPECT_THAT(sim::culprits_of(report), ElementsAre(1));
}

TEST(MergedReport, RemarksThatDifferInTheRankAlone_AreOne) {
  auto first = report_of(0), second = report_of(1), third = report_of(2);
  first.remarks = {"rank 0: DDP #1 was never called", "[checks] replicas is the simulation's"};
  second.remarks = {"rank 1: DDP #1 was never called", "rank 1: DDP #2 was never called", "rank 1 is odd"};
  third.remarks = {"rank 2: DDP #1 was never called", "[checks] replicas is the simulation's"};
  EXPECT_THAT(merged({{first, ""}, {second, ""}, {third, ""}}).remarks,
              ElementsAre("ranks 0-2: DDP #1 was never called", "[checks] replicas is the simulation's",
                          "rank 1: DDP #2 was never called", "rank 1 is odd"));
}

// The report of a process that a second Ctrl-C ended.
Report ended_at_once(int rank, std::string doing, std::string where, std::vector<int> waits_for = {}) {
  Report report = report_of(rank);
  report.verdict = Verdict::interrupted;
  report.headline = "rank " + std::to_string(rank) + " is blocked in " + doing + ": ended by a second SIGINT";
  report.rank_lines = {
      {rank, RankOutcome::blocked, at_ms(5), std::move(doing), "", std::move(where), std::move(waits_for)}};
  return report;
}

TEST(MergedReport, OfRanksThatASecondInterruptEnded_TheOneForWhichOthersWaitIsNamed) {
  const auto* const call = "barrier #2 on group \"world\"";
  const auto report = merged({{ended_at_once(0, call, "", {1}), ""},
                              {ended_at_once(1, "a system call", "train.cpp:5"), ""},
                              {ended_at_once(2, call, "", {1}), ""}});
  EXPECT_EQ(report.verdict, Verdict::interrupted);
  EXPECT_EQ(report.headline,
            "rank 1 is blocked in a system call: ended by a second SIGINT; rank 1 was at train.cpp:5; ranks 0,2 waited "
            "for it in barrier #2 on group \"world\"");
}

TEST(MergedReport, OfRanksThatASecondInterruptEnded_TheOneInNoCallOfAGroupIsNamed) {
  const auto* const call = "barrier #2 on group \"world\"";
  const auto report =
      merged({{ended_at_once(0, call, ""), ""}, {report_of(1), ""}, {ended_at_once(2, "a system call", ""), ""}});
  EXPECT_EQ(report.headline, "rank 2 is blocked in a system call: ended by a second SIGINT");
}

TEST(MergedReport, OfRanksThatASecondInterruptEnded_ThatAreAlike_TheFirstIsNamed) {
  const auto report = merged({{ended_at_once(0, "a system call", ""), ""},
                              {ended_at_once(1, "a system call", ""), ""},
                              {ended_at_once(2, "a system call", ""), ""}});
  EXPECT_EQ(report.headline, "rank 0 is blocked in a system call: ended by a second SIGINT; and 2 more");
}

TEST(MergedReport, ARankWithoutAReport_HasNoTime) {
  const auto report = merged({{report_of(0), ""}, {std::nullopt, "it is gone"}, {report_of(2), ""}});
  EXPECT_EQ(report.rank_lines[1].at, RankLine::kNotKnown);
  const auto again = sim::report_from_json(sim::to_json(report));
  EXPECT_EQ(again.rank_lines[1].at, RankLine::kNotKnown);
  EXPECT_EQ(again.rank_lines[2].at, at_ms(4));
  EXPECT_THAT(sim::to_text(again), HasSubstr("\nranks 0,2: returned; t=2 ms to 4 ms (real time)\n"
                                             "rank 1:    failed: left no report: it is gone\n"));
}

// "Broken pipe" usually follows from another rank that has failed. Here no rank has.
TEST(MergedReport, NoFailureOfARankBecomesAnOk) {
  for (const Verdict verdict : all_verdicts()) {
    if (verdict == Verdict::ok) continue;
    const auto report = merged({{report_of(0), ""}, {failed(1, verdict, "Broken pipe in the log"), ""}});
    EXPECT_EQ(report.verdict, verdict);
    EXPECT_THAT(report.headline, HasSubstr("Broken pipe in the log"));
  }
}

TEST(MergedReport, ACheckThatFailed_OutweighsExceptions) {
  const auto report = merged({{failed(0, Verdict::rank_failed, "out of range"), ""},
                              {failed(1, Verdict::check_failed, "check \"the loss falls\" did not hold"), ""},
                              {failed(2, Verdict::check_failed, "check \"the loss falls\" did not hold"), ""}});
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.headline, "rank 1: check \"the loss falls\" did not hold; and 1 more");
}

TEST(MergedReport, AProcessThatTheCommandKilled_IsNotTheSystems) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "killed_processes";
  for (const char* rank : {"rank-0", "rank-1"}) std::filesystem::create_directories(folder / rank);
  std::vector<ProcessEnd> ends(2);
  ends[0] = {.ended = true, .code = 0, .signal = SIGKILL, .stopped_by = 0, .killed = true};
  ends[1] = {.ended = true, .code = 0, .signal = SIGKILL, .stopped_by = SIGTSTP, .killed = true};
  auto report = merged_report_of(folder, 2, ends);
  EXPECT_EQ(report.rank_lines[0].doing, "left no report: its process did not end when it was asked to, and was killed");
  EXPECT_THAT(report.rank_lines[1].doing, HasSubstr("was stopped by SIGTSTP (Stopped), and so was killed in the end"));
  ends[0].killed = false;
  report = merged_report_of(folder, 2, ends);
  EXPECT_EQ(report.rank_lines[0].doing, "left no report: its process was ended by SIGKILL (Killed)");
  EXPECT_EQ(report.rank_lines[0].at, RankLine::kNotKnown);
}

}  // namespace
}  // namespace rehearse::cli
