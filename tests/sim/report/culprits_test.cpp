// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report shows the culprits of its run, even if no rank failed and none waits.
#include "report/writers/culprits.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/fault.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "report/writers/report_json.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace culprits_test {
namespace {

using namespace rehearse;
using sim::culprits_of;

std::vector<int> culprits(const WorldOptions& options, const World::Body& body, Verdict verdict) {
  const auto report = World(options).run(body);
  EXPECT_EQ(report.verdict, verdict) << report.headline;
  EXPECT_EQ(culprits_of(sim::report_from_json(sim::to_json(report))), culprits_of(report));
  return culprits_of(report);
}

TEST(Culprits, OfATensorTouchedInFlight_AreTheRankThatTouchedIt) {
  const auto found = culprits(
      {.ranks = 3, .check_buffers = true},
      [](RankContext& ctx) {
        auto grad = at::ones({4});
        auto work = ctx.group().allreduce(grad);
        if (ctx.rank() == 2) grad.mul_(2);
        work->wait();
      },
      Verdict::check_failed);
  EXPECT_EQ(found, std::vector<int>{2});
}

TEST(Culprits, OfSharedMemory_AreBoth) {
  const auto shared = at::zeros({4});
  const auto found = culprits(
      {.ranks = 2, .check_sharing = true}, [&](RankContext& ctx) { ctx.group().allreduce(shared)->wait(); },
      Verdict::check_failed);
  EXPECT_EQ(found, (std::vector<int>{0, 1}));
}

TEST(Culprits, OfAGroupThatARankNeverMade_AreThatRank) {
  const auto body = [](bool uses_it) {
    return [=](RankContext& ctx) {
      if (ctx.rank() == 3) return ctx.group().barrier()->wait();
      const auto node = ctx.new_group({0, 1, 2, 3}, "node");
      return (uses_it ? node : ctx.group()).barrier()->wait();
    };
  };
  const auto report = World({.ranks = 4}).run([&](RankContext& ctx) { body(false)(ctx); });
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].first.fingerprint, "new_group #1 (\"node\")");
  EXPECT_EQ(report.differences[0].first.ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(report.differences[0].second.fingerprint, "never called it; called last: barrier #1 on group \"world\"");
  EXPECT_TRUE(report.differences[0].second.where.text.starts_with("culprits_test.cpp:"));
  EXPECT_EQ(
      culprits({.ranks = 4}, [&](RankContext& ctx) { body(false)(ctx); }, Verdict::mismatch), std::vector<int>{3});
  EXPECT_EQ(culprits({.ranks = 4}, [&](RankContext& ctx) { body(true)(ctx); }, Verdict::deadlock), std::vector<int>{3});
}

// Rank 3 makes the call of a smaller group on the world.
TEST(Culprits, OfACallThatFewerRanksMade_AreTheseRanks) {
  const auto body = [](RankContext& ctx) {
    const auto part = ctx.new_group({0, 1, 2}, "part");
    (ctx.rank() == 3 ? ctx.group() : part).barrier()->wait();
  };
  EXPECT_EQ(culprits({.ranks = 4}, body, Verdict::deadlock), std::vector<int>{3});
}

// The rank that waits for its own thread is not at fault, but whom the thread awaits.
TEST(Culprits, OfACallInAThread_AreTheRanksThatItAwaits) {
  const auto body = [](RankContext& ctx) {
    ctx.group().barrier()->wait();
    std::thread thread([&] {
      if (ctx.rank() == 1) ctx.group().allreduce(at::ones({1}))->wait();
    });
    thread.join();
  };
  EXPECT_EQ(culprits({}, body, Verdict::deadlock), std::vector<int>{0});
  const auto report = World({}).run(body);
  EXPECT_THAT(report.rank_lines[1].doing, testing::StartsWith("allreduce #2 on group \"world\""));
}

TEST(Culprits, OfAGroupMadeInAnotherOrder_AreThatRank) {
  const auto found = culprits(
      {.ranks = 4},
      [](RankContext& ctx) {
        const bool last_first = ctx.rank() == 3;
        ctx.new_group({0, 1}, last_first ? "b" : "a");
        ctx.new_group({0, 1}, last_first ? "a" : "b");
      },
      Verdict::mismatch);
  EXPECT_EQ(found, std::vector<int>{3});
}

TEST(Culprits, OfACallWithoutAWait_AreTheRanksThatNeverMadeIt) {
  const auto found = culprits(
      {.ranks = 3},
      [](RankContext& ctx) {
        if (ctx.rank() != 1) ctx.group().allreduce(at::ones({2}));
      },
      Verdict::mismatch);
  EXPECT_EQ(found, std::vector<int>{1});
}

// The failing ranks lost their connection to the rank that crashed.
TEST(Culprits, OfABrokenConnection_AreTheRankThatLeft) {
  WorldOptions options{.ranks = 4};
  options.faults = {parse_fault("crash rank=3 at=allreduce#2 peers=disconnect")};
  const auto found = culprits(
      options,
      [](RankContext& ctx) {
        for (int step = 0; step < 3; ++step) {
          auto grad = at::ones({2});
          ctx.group().allreduce(grad)->wait();
        }
      },
      Verdict::rank_failed);
  EXPECT_EQ(found, std::vector<int>{3});
}

// A report as in docs/examples/compile_divergence: some ranks wait in compiler collectives, and the others have gone
// on.
std::vector<int> of_ranks_that_compile(std::vector<int> compiling, std::vector<Cause> causes) {
  Report report;
  report.verdict = Verdict::deadlock;
  report.causes = std::move(causes);
  for (int rank = 0; rank < 4; ++rank) {
    RankLine line{rank, RankOutcome::blocked, kTimeZero, "allreduce #5 on group \"world\"", "", "", compiling};
    if (std::find(compiling.begin(), compiling.end(), rank) != compiling.end()) {
      line.doing = "allgather #5 on group \"compile of world\"";
      line.waits_for.clear();
      for (int other = 0; other < 4; ++other) {
        if (std::find(compiling.begin(), compiling.end(), other) == compiling.end()) line.waits_for.push_back(other);
      }
    }
    report.rank_lines.push_back(std::move(line));
  }
  return culprits_of(report);
}

TEST(Culprits, OfCompilingAlone_AreTheFewer) {
  EXPECT_EQ(of_ranks_that_compile({3}, {{Cause::Kind::compiles, {3}}}), std::vector<int>{3});
  EXPECT_EQ(of_ranks_that_compile({0, 1, 2}, {{Cause::Kind::compiles, {0, 1, 2}}}), std::vector<int>{3});
  EXPECT_EQ(of_ranks_that_compile({0, 1}, {{Cause::Kind::compiles, {0, 1}}}), (std::vector<int>{0, 1}));
}

// If a rank crashed before other ranks compiled, the culprits follow from the waits, whichever ranks compile.
TEST(Culprits, OfCompilingAfterACrash_AreThoseToWhichTheWaitsLead) {
  EXPECT_EQ(of_ranks_that_compile({3}, {{Cause::Kind::crashed, {0}}, {Cause::Kind::compiles, {3}}}),
            std::vector<int>{3});
  EXPECT_EQ(of_ranks_that_compile({0, 1}, {{Cause::Kind::crashed, {0}}, {Cause::Kind::compiles, {0, 1}}}),
            (std::vector<int>{0, 1, 2, 3}));
}

// Most programs are right on most ranks, so the ranks in the rarer call are to blame.
TEST(Culprits, OfRanksThatWaitForEachOther_AreThoseInAnotherCallThanMost) {
  EXPECT_EQ(of_ranks_that_compile({3}, {}), std::vector<int>{3});
  EXPECT_EQ(of_ranks_that_compile({2, 3}, {}), (std::vector<int>{0, 1, 2, 3}));
}

// The second line of a report.
std::string culprit_line(const Report& report) {
  const auto text = sim::to_text(report, {.width = 1000});
  const auto begin = text.find('\n') + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

Report report_of(const std::string& headline, std::vector<RankLine> lines) {
  Report report;
  report.verdict = Verdict::deadlock;
  report.headline = headline;
  report.ranks = static_cast<int>(lines.size());
  report.rank_lines = std::move(lines);
  return report;
}

TEST(CulpritLine, OfRanksThatReturned_HasTheirLastCalls) {
  RankLine returned{1, RankOutcome::returned, {}, "", "broadcast #1", "", {}, "job.cpp:7 in step"};
  const auto report =
      report_of("allreduce #2: rank 1 has ended",
                {{0, RankOutcome::blocked, {}, "allreduce #2", "", "job.cpp:9 in step", {1}}, returned});
  EXPECT_EQ(culprit_line(report), "culprit: rank 1, after its last call at job.cpp:7 in step");
  EXPECT_EQ(culprit_line(sim::report_from_json(sim::to_json(report))), culprit_line(report));
}

TEST(CulpritLine, OfPlacesThatTheHeadlineHas_IsLeftOut) {
  const RankLine waits{0, RankOutcome::blocked, {}, "barrier #1", "", "job.cpp:9 in step", {1}};
  const RankLine stuck{1, RankOutcome::blocked, {}, "a sleep", "", "job.cpp:5 in rest", {}};
  EXPECT_EQ(culprit_line(report_of("rank 1 waits forever", {waits, stuck})), "culprit: rank 1 at job.cpp:5 in rest");
  EXPECT_THAT(culprit_line(report_of("rank 1 waits forever at job.cpp:5 in rest", {waits, stuck})),
              testing::StartsWith("rank 0: blocked in barrier #1, at job.cpp:9 in step; waits for rank 1"));
}

// The element of a tensor is no place.
TEST(CulpritLine, OfAFinding_IsLeftOutOnlyIfTheFindingHasAPlace) {
  const auto line_of = [](const std::string& headline) {
    auto report = report_of(headline, {{0, RankOutcome::blocked, {}, "a sleep", "", "job.cpp:9 in step", {}},
                                       {1, RankOutcome::blocked, {}, "a sleep", "", "job.cpp:5 in step", {}}});
    report.verdict = Verdict::check_failed;
    report.findings = {{headline, {1}, {}}};
    return culprit_line(report);
  };
  EXPECT_EQ(line_of("weight differs at [0, 1] on rank 1"), "culprit: rank 1 at job.cpp:5 in step");
  EXPECT_THAT(line_of("weight differs at [0, 1] on rank 1, changed at job.cpp:2 in load"),
              testing::Not(testing::StartsWith("culprit")));
}

TEST(CulpritLine, OfRanksThatAreAllThere_IsLeftOut) {
  const RankLine one{0, RankOutcome::blocked, {}, "recv #1", "", "job.cpp:9 in step", {1}};
  const RankLine other{1, RankOutcome::blocked, {}, "recv #1", "", "job.cpp:8 in step", {0}};
  EXPECT_THAT(culprit_line(report_of("both wait", {one, other})), testing::StartsWith("rank 0: blocked in recv #1"));
}

TEST(CulpritLine, OfARankThatLeftOutACall_NamesThatCall) {
  const RankLine waits{0, RankOutcome::blocked, {}, "allreduce #6", "", "job.cpp:9 in step", {1}};
  const RankLine returned{1, RankOutcome::returned, {}, "", "allreduce #5", "", {}, "job.cpp:7 in step"};
  auto report = report_of(
      "rank 1 is out of step from #4 of group \"world\" on: it left out the allreduce at "
      "job.cpp:6 in step, which rank 0 made; allreduce #6: rank 1 has ended",
      {waits, returned});
  report.causes = {{Cause::Kind::out_of_step, {1}, "#4 of group \"world\""}};
  EXPECT_EQ(culprit_line(report), "culprit: rank 1, out of step from #4 of group \"world\" on");
  auto failed =
      report_of("rank 1 has ended without allreduce #6, in which rank 0 timed out at 30 s; then rank 0 failed: x",
                {{0, RankOutcome::failed, {}, "x", "", "job.cpp:10 in step", {}}, returned});
  failed.verdict = Verdict::rank_failed;
  failed.causes = {{Cause::Kind::ended_without, {1}, "allreduce #6"}};
  EXPECT_EQ(culprits_of(failed), std::vector<int>{1});
  EXPECT_EQ(culprit_line(failed), "culprit: rank 1, which has ended without allreduce #6");
}

// The exception's text may contain "; ", which separates the clauses of a headline.
TEST(CulpritLine, OfARankThatThrew_NamesTheThrow) {
  const RankLine waits{0, RankOutcome::blocked, {}, "barrier #1", "", "job.cpp:9 in step", {1}};
  const RankLine unwinds{1, RankOutcome::blocked, {}, "a sleep", "", "job.cpp:2 in ~Job", {}};
  auto report = report_of(
      "rank 1 was unwinding an exception, 'disk is full', thrown at job.cpp:8 in step; rank 1 "
      "waits forever in a sleep at job.cpp:2 in ~Job",
      {waits, unwinds});
  report.causes = {{Cause::Kind::threw, {1}, "", "job.cpp:8 in step"}};
  EXPECT_EQ(culprit_line(report), "culprit: rank 1, which threw at job.cpp:8 in step");
  report.headline.replace(report.headline.find("disk"), 4, "x; y");
  EXPECT_EQ(culprit_line(report), "culprit: rank 1, which threw at job.cpp:8 in step");
}

// Every rank waits for the next one, and only the last two wait for each other.
TEST(Culprits, OfARingBehindAChain_AreTheRing) {
  const auto found = culprits(
      {.ranks = 5},
      [](RankContext& ctx) {
        auto given = at::zeros({2});
        const int next = ctx.rank() + 1, tag = next == 4 ? 21 : 22;
        if (next < 5) ctx.group().recv(given, next, tag)->wait();
        if (ctx.rank() > 0) ctx.group().send(given, ctx.rank() - 1, 22)->wait();
      },
      Verdict::deadlock);
  EXPECT_EQ(found, (std::vector<int>{3, 4}));
}

TEST(Culprits, OfAReportWithoutCauses_AreNotGuessedFromItsTexts) {
  auto text = sim::json_text(
      sim::report_as_json(report_of("rank 0 was late", {{0, RankOutcome::returned, {}, "", "", "", {}}})));
  const std::string key = "\"causes\"";
  text.replace(text.find(key), key.size(), "\"cause\"");
  EXPECT_THAT([&] { sim::report_from_json(text); },
              testing::ThrowsMessage<sim::ReportFormatError>(testing::HasSubstr("causes")));
}

TEST(CulpritLine, OfARankThatLeftALoopEarly_CountsItsCalls) {
  auto report = report_of("rank 2 called broadcast while ranks 0-1 called allreduce",
                          {{0, RankOutcome::blocked, {}, "allreduce #5", "", "job.cpp:7 in step", {2}},
                           {1, RankOutcome::blocked, {}, "allreduce #5", "", "job.cpp:7 in step", {2}},
                           {2, RankOutcome::blocked, {}, "broadcast #5", "", "job.cpp:9 in step", {0, 1}}});
  report.verdict = Verdict::mismatch;
  report.differences = {{"world",
                         5,
                         {{0, 1}, "allreduce()", "job.cpp:7 in step"},
                         {{2}, "broadcast()", "job.cpp:9 in step"},
                         {},
                         {{"op", "allreduce", "broadcast"}}}};
  report.call_counts = {{"world", "job.cpp:7 in step", {{5, {0, 1}}, {4, {2}}}}};
  EXPECT_EQ(culprit_line(report),
            "culprit: rank 2 at job.cpp:9 in step, after 4 calls from job.cpp:7 in step; ranks 0-1 made 5");
}

// Ranks times ranks would take minutes.
TEST(Culprits, OfVeryManyRanks_TakeTimeThatIsLinearInTheRanks) {
  constexpr int kRanks = 65'536;
  Report report;
  report.verdict = Verdict::deadlock;
  RankLine line;
  line.doing = "allreduce #7 on group \"world\"";
  line.waits_for = {0};
  for (line.rank = 1; line.rank < kRanks; ++line.rank) report.rank_lines.push_back(line);
  const auto began = std::clock();
  EXPECT_EQ(culprits_of(report), std::vector<int>{0});
  EXPECT_LT(std::clock() - began, 5 * CLOCKS_PER_SEC);
}

// The rank on which a check of the program fails need not be to blame.
TEST(CulpritLine, OfACheckOfTheProgram_SaysWhereItFailed) {
  auto report =
      report_of("rank 0: check \"all agree\" did not hold",
                {{0, RankOutcome::failed, {}, "check \"all agree\" did not hold", "", "job.cpp:9 in step", {}},
                 {1, RankOutcome::stopped, {}, "", "", "", {}}});
  report.verdict = Verdict::check_failed;
  EXPECT_EQ(culprit_line(report), "failed check: rank 0 at job.cpp:9 in step");
}

TEST(Places, OfARankThatReturned_AreThoseOfItsLastCall) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    ctx.group().allreduce(at::ones({2}))->wait();
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.rank_lines[1].last_where.text, testing::StartsWith("culprits_test.cpp:"));
  EXPECT_EQ(report.rank_lines[0].last_where.text, "");
}

}  // namespace
}  // namespace culprits_test
