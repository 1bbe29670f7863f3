// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/determinism.h>

#include <gtest/gtest.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/virtual_clock.h>

#include "core/exec/no_rank_state.h"

namespace rehearse::sim {
namespace {

using What = RunDifference::What;

const VirtualTime kLater = kTimeZero + std::chrono::microseconds(1200);

// 43 equal decisions at t=1.2 ms.
RunPath path() {
  RunPath path;
  path.decisions.assign(43, {ChoiceKind::next_fiber, 8, 3});
  path.states.assign(43, {kLater, 99});
  path.decisions_hash = 1;
  path.events_hash = 2;
  return path;
}

void expect_difference(const RunPath& first, const RunPath& second, What what, std::size_t decision, const char* text) {
  const auto difference = first_difference(first, second);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->what, what);
  EXPECT_EQ(difference->decision, decision);
  EXPECT_EQ(difference->text, text);
}

TEST(FirstDifference, EqualRuns_Nothing) { EXPECT_FALSE(first_difference(path(), path()).has_value()); }

TEST(FirstDifference, OtherAnswer_NamesDecisionBothAnswersAndTime) {
  RunPath second = path();
  second.decisions[41].answer = 5;
  expect_difference(path(), second, What::decision, 41,
                    "decision 41 (which rank runs next): the first run chose option 3 of 8, the second run option 5 of "
                    "8 at t=1.2 ms");
  second.states[41].at = kTimeZero;
  expect_difference(
      path(), second, What::decision, 41,
      "decision 41 (which rank runs next): the first run chose option 3 of 8, the second run option 5 of 8 at "
      "t=1.2 ms in the first run and t=0 ns in the second");
  second.states.clear();
  RunPath first = path();
  first.states.clear();
  expect_difference(
      first, second, What::decision, 41,
      "decision 41 (which rank runs next): the first run chose option 3 of 8, the second run option 5 of 8");
}

TEST(FirstDifference, OtherKindOfChoice_NamesBothKinds) {
  RunPath second = path();
  second.decisions[7] = {ChoiceKind::latency, 16, 0};
  expect_difference(
      path(), second, What::decision, 7,
      "decision 7: the first run chose option 3 of 8 (which rank runs next), the second run chose option 0 of 16 "
      "(how long a transfer, a compilation or a call on a file takes) at t=1.2 ms");
}

TEST(FirstDifference, OneRunEndsEarlier_NamesTheDecisionThatTheOtherTook) {
  RunPath shorter = path();
  shorter.decisions.pop_back();
  shorter.states.pop_back();
  expect_difference(path(), shorter, What::decision, 42,
                    "decision 42 (which rank runs next): the first run chose option 3 of 8, the second run made no "
                    "such decision at t=1.2 ms");
  expect_difference(shorter, path(), What::decision, 42,
                    "decision 42 (which rank runs next): the second run chose option 3 of 8, the first run made no "
                    "such decision at t=1.2 ms");
}

TEST(FirstDifference, SameAnswersOtherSteps_SchedulesDiffer) {
  RunPath second = path();
  second.decisions_hash = 77;
  second.states[12].hash = 98;
  second.decisions[20].answer = 0;  // a consequence of the other order
  expect_difference(
      path(), second, What::schedule, 12,
      "before decision 12 (which rank runs next), ranks ran in another order, or at other times at t=1.2 ms");
  second = path();
  second.decisions_hash = 77;
  expect_difference(path(), second, What::schedule, 43,
                    "all 43 decisions are equal, but after the last one ranks ran in another order, or at other times");
  second.states.clear();
  expect_difference(path(), second, What::schedule, 43,
                    "all 43 decisions are equal, but ranks ran in another order, or at other times");
}

TEST(FirstDifference, OnlyEventsDiffer_SaysSo) {
  RunPath second = path();
  second.events_hash = 3;
  expect_difference(path(), second, What::events, 0, "all 43 decisions and steps are equal, but the operations differ");
}

// Three ranks make a call at the same time, and a second call a microsecond later. Rank 1's second call comes late.
RunPath path_with_calls(VirtualDuration late) {
  RunPath run = path();
  run.calls.texts = {"allreduce(sum, float32[3], cpu)", "world", ""};
  const auto at = [](std::int64_t microseconds) { return kTimeZero + std::chrono::microseconds(microseconds); };
  for (const int rank : {0, 1, 2}) run.calls.calls.push_back({at(10), rank, 1, 0, 1, 2});
  for (const int rank : {0, 2, 1}) run.calls.calls.push_back({rank == 1 ? at(11) + late : at(11), rank, 2, 0, 1, 2});
  return run;
}

std::string call_that_differs(const RunPath& second) {
  RunPath first = path_with_calls({});
  first.decisions[41].answer = 5;
  const auto text = first_difference(first, second)->text;
  return text.substr(0, text.find("decision 41"));
}

TEST(FirstDifference, Calls_TheRankWhoseCallDiffersIsNamed) {
  EXPECT_EQ(call_that_differs(path_with_calls({})), "");
  EXPECT_EQ(
      call_that_differs(path_with_calls(std::chrono::microseconds(2))),
      "the first call that differs is rank 1's allreduce(sum, float32[3], cpu) as #2 of group \"world\" at t=11 us in "
      "the first run, at t=13 us in the second; ");
  RunPath other = path_with_calls({});
  other.calls.texts.push_back("barrier()");
  other.calls.calls[4].what = 3;
  EXPECT_EQ(
      call_that_differs(other),
      "the first call that differs is rank 2's allreduce(sum, float32[3], cpu) as #2 of group \"world\" at t=11 us "
      "in the first run, barrier() as #2 of group \"world\" at t=11 us in the second; ");
  RunPath fewer = path_with_calls({});
  fewer.calls.calls.pop_back();
  EXPECT_EQ(
      call_that_differs(fewer),
      "the first call that differs is rank 1's allreduce(sum, float32[3], cpu) as #2 of group \"world\" at t=11 us, "
      "only in the first run; ");
}

// The ranks call in another order, and the same texts have other indices in the table. Neither is a difference.
TEST(FirstDifference, SameCallsOfEachRank_NameNone) {
  RunPath other = path_with_calls({});
  std::swap(other.calls.calls[0], other.calls.calls[2]);
  std::swap(other.calls.texts[0], other.calls.texts[1]);
  for (auto& call : other.calls.calls) std::swap(call.what, call.group);
  EXPECT_EQ(call_that_differs(other), "");
}

// Rank 2 yields `extra` times more than the other ranks.
RunPath witnessed(std::uint64_t seed, int extra) {
  class EndWorld final : public exec::FailureSink {
    Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
  };
  RandomOracle answers(seed);
  WitnessOracle witness(answers);
  DecisionLog log;
  Decisions decisions(witness, log);
  VirtualClock clock;
  exec::NoRankState state;
  EndWorld sink;
  exec::RankExecutor executor({.ranks = 4}, decisions, clock, state, sink);
  executor.run([&](int rank) {
    exec::this_rank::sleep_for(std::chrono::microseconds(100));
    for (int i = 0; i < 5 + (rank == 2 ? extra : 0); ++i) exec::this_rank::yield();
  });
  return witness.path(log, 0);
}

TEST(WitnessOracle, SameSeedTwice_NoDifference) {
  const RunPath first = witnessed(3, 0);
  EXPECT_EQ(first.states.size(), first.decisions.size());
  EXPECT_FALSE(first_difference(first, witnessed(3, 0)).has_value());
}

TEST(WitnessOracle, RankThatDoesMore_DifferenceAtItsTime) {
  const auto difference = first_difference(witnessed(3, 0), witnessed(3, 1));
  ASSERT_TRUE(difference.has_value());
  EXPECT_NE(difference->text.find("at t=100 us"), std::string::npos) << difference->text;
}

}  // namespace
}  // namespace rehearse::sim
