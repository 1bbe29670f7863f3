// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/virtual_clock.h>

#include "core/exec/no_rank_state.h"

namespace rehearse::sim {
namespace {

std::uint32_t ask(Oracle& oracle, ChoiceKind kind, std::uint32_t options) {
  std::vector<std::uint32_t> candidates(options);
  std::iota(candidates.begin(), candidates.end(), 0u);
  return oracle.choose(kind, candidates);
}

template <class Call>
ReplayError error_of(Call call) {
  try {
    call();
  } catch (const ReplayError& error) {
    return error;
  }
  throw std::logic_error("no ReplayError was thrown");
}

const std::vector<Decision> kLog{{ChoiceKind::next_fiber, 8, 5}, {ChoiceKind::latency, 16, 2}};

TEST(ReplayOracle, SameQuestions_AnswersOfTheLog) {
  ReplayOracle oracle(kLog, PastEnd::stop);
  EXPECT_EQ(ask(oracle, ChoiceKind::next_fiber, 8), 5u);
  EXPECT_EQ(ask(oracle, ChoiceKind::latency, 16), 2u);
  EXPECT_EQ(oracle.answered(), 2u);
  EXPECT_NO_THROW(oracle.require_used_up());
}

// While the log has answers, weights have no effect. Past the end of the log, the answers are those of the seed's
// RandomOracle, with weights.
TEST(ReplayOracle, Weights_CountOnlyPastTheEnd) {
  const std::vector<std::uint32_t> candidates{0, 1}, weights{1, 99};
  RandomOracle seeded(9);
  ReplayOracle oracle({{ChoiceKind::fault, 2, 0}}, PastEnd::random, 9);
  seeded.choose(ChoiceKind::fault, candidates, weights);
  EXPECT_EQ(oracle.choose(ChoiceKind::fault, candidates, weights), 0u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(oracle.choose(ChoiceKind::fault, candidates, weights),
              seeded.choose(ChoiceKind::fault, candidates, weights));
  }
}

TEST(ReplayOracle, OtherKindOfChoice_NamesTheStepAndBothQuestions) {
  ReplayOracle oracle(kLog, PastEnd::random);
  ask(oracle, ChoiceKind::next_fiber, 8);
  const auto error = error_of([&] { ask(oracle, ChoiceKind::next_fiber, 3); });
  EXPECT_STREQ(error.what(),
               "the replay differs at decision 1: the log has latency among 16, this run asks next_fiber among 3");
  EXPECT_EQ(error.problem(), ReplayError::Problem::other_kind);
  EXPECT_EQ(error.step(), 1u);
  EXPECT_EQ(error.expected(), (Decision{ChoiceKind::latency, 16, 2}));
  EXPECT_EQ(error.found(), (Decision{ChoiceKind::next_fiber, 3, 0}));
  EXPECT_EQ(error.at(), std::nullopt);
}

TEST(ReplayOracle, OtherNumberOfCandidates_IsAnErrorAlsoWhenTheAnswerWouldFit) {
  ReplayOracle oracle(kLog, PastEnd::random);
  const auto error = error_of([&] { ask(oracle, ChoiceKind::next_fiber, 9); });
  EXPECT_STREQ(error.what(),
               "the replay differs at decision 0: the log has next_fiber among 8, this run asks next_fiber among 9");
  EXPECT_EQ(error.problem(), ReplayError::Problem::other_options);
  EXPECT_EQ(oracle.answered(), 0u);
}

TEST(ReplayOracle, PastTheEnd_StopSaysSo) {
  ReplayOracle oracle(kLog, PastEnd::stop);
  ask(oracle, ChoiceKind::next_fiber, 8);
  ask(oracle, ChoiceKind::latency, 16);
  const auto error = error_of([&] { ask(oracle, ChoiceKind::fault, 2); });
  EXPECT_STREQ(error.what(), "the replay differs from decision 2 on: the log ends there, this run asks fault among 2");
  EXPECT_EQ(error.problem(), ReplayError::Problem::past_end);
}

// A killed run left half a log; its seed determines how it would have gone on.
TEST(ReplayOracle, PastTheEndOfASeedsLog_GoesOnAsThatSeedDid) {
  RandomOracle original(77);
  std::vector<Decision> log;
  std::vector<std::uint32_t> expected, found;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const auto kind = i % 4 == 3 ? ChoiceKind::latency : ChoiceKind::next_fiber;
    expected.push_back(ask(original, kind, 2 + i));
    if (i < 25) log.push_back({kind, 2 + i, expected.back()});
  }
  ReplayOracle replay(log, PastEnd::random, 77);
  for (std::uint32_t i = 0; i < 60; ++i) {
    found.push_back(ask(replay, i % 4 == 3 ? ChoiceKind::latency : ChoiceKind::next_fiber, 2 + i));
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(replay.answered(), 60u);
}

TEST(ReplayOracle, RunEndsBeforeTheLog_RequireUsedUpNamesWhatIsLeft) {
  ReplayOracle oracle(kLog, PastEnd::stop);
  ask(oracle, ChoiceKind::next_fiber, 8);
  const auto error = error_of([&] { oracle.require_used_up(); });
  EXPECT_STREQ(error.what(),
               "the replay differs from decision 1 on: this run ends there, the log has latency among 16");
  EXPECT_EQ(error.problem(), ReplayError::Problem::left_over);
  EXPECT_EQ(error.found(), std::nullopt);
}

struct OneRun {
  std::vector<Decision> decisions;
  std::uint64_t hash = 0;
};

OneRun run_ranks(Oracle& oracle, int ranks, int yields) {
  class EndWorld final : public exec::FailureSink {
    Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
  };
  DecisionLog log;
  Decisions decisions(oracle, log);
  VirtualClock clock;
  exec::NoRankState state;
  EndWorld sink;
  exec::RankExecutor executor({.ranks = ranks}, decisions, clock, state, sink);
  executor.run([&](int rank) {
    exec::this_rank::sleep_for(std::chrono::microseconds(100));
    for (int i = 0; i < yields + rank; ++i) exec::this_rank::yield();
  });
  return {{log.decisions().begin(), log.decisions().end()}, log.hash()};
}

TEST(ReplayOracle, ExecutorsRun_ReplaysWithTheSameHash) {
  RandomOracle seeded(3);
  const OneRun first = run_ranks(seeded, 8, 20);
  ReplayOracle replay(first.decisions, PastEnd::stop);
  const OneRun second = run_ranks(replay, 8, 20);
  EXPECT_EQ(second.hash, first.hash);
  EXPECT_EQ(second.decisions, first.decisions);
  EXPECT_NO_THROW(replay.require_used_up());

  RandomOracle other_seed(4);
  EXPECT_NE(run_ranks(other_seed, 8, 20).hash, first.hash);
}

TEST(ReplayOracle, ExecutorsRunOfAnotherProgram_ErrorCarriesTheVirtualTime) {
  RandomOracle seeded(3);
  const OneRun first = run_ranks(seeded, 4, 2);
  ReplayOracle replay(first.decisions, PastEnd::stop);
  const auto error = error_of([&] { run_ranks(replay, 4, 9); });
  ASSERT_TRUE(error.at().has_value());
  EXPECT_EQ(*error.at(), kTimeZero + std::chrono::microseconds(100));
  EXPECT_NE(std::string(error.what()).find(" at t=100 us: "), std::string::npos) << error.what();
}

}  // namespace
}  // namespace rehearse::sim
