// SPDX-License-Identifier: BSD-3-Clause
// The queue of fibers that can run, and the record of the choices.
#include "exec/executor/switcher.h"

#include <gtest/gtest.h>

#include <rehearse/exec/decision_log.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec {
namespace {

using test::World;

std::vector<std::uint32_t> ids(const RunQueue& queue) { return {queue.candidates().begin(), queue.candidates().end()}; }

TEST(RunQueue, TakingTheOldest_IsRoundRobin) {
  RunQueue queue;
  for (std::uint32_t id = 0; id < 4; ++id) queue.push(id);
  EXPECT_EQ(queue.take(0), 0u);
  queue.push(0);
  EXPECT_EQ(ids(queue), (std::vector<std::uint32_t>{1, 2, 3, 0}));
}

TEST(RunQueue, TakingAnother_PutsTheOldestInItsPlace) {
  RunQueue queue;
  for (std::uint32_t id = 0; id < 4; ++id) queue.push(id);
  EXPECT_EQ(queue.take(2), 2u);
  EXPECT_EQ(ids(queue), (std::vector<std::uint32_t>{1, 0, 3}));
}

// From time to time, the queue drops the free space at its front. No entry may be lost or doubled.
TEST(RunQueue, ManyRounds_KeepsEveryId) {
  RunQueue queue;
  constexpr std::uint32_t count = 700;
  for (std::uint32_t id = 0; id < count; ++id) queue.push(id);
  for (std::uint32_t round = 0; round < 10'000; ++round) queue.push(queue.take(round * 7919 % queue.size()));
  auto left = ids(queue);
  std::sort(left.begin(), left.end());
  ASSERT_EQ(left.size(), count);
  for (std::uint32_t id = 0; id < count; ++id) EXPECT_EQ(left[id], id);
  while (!queue.empty()) queue.take(0);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(RunQueueDeathTest, FiberThatIsNotThere_IsABrokenInvariant) {
  RunQueue queue;
  queue.push(3);
  EXPECT_EQ(queue.index_of(3), 0u);
  EXPECT_DEATH(queue.index_of(4), "not index < size.. .fiber = 4, size.. = 1.");
}

class FixedOracle final : public Oracle {
 public:
  explicit FixedOracle(std::uint32_t answer) : answer_(answer) {}
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>) override {
    return answer_;
  }

 private:
  std::uint32_t answer_;
};

TEST(Decisions, OneCandidate_AsksNoOracleAndRecordsNothing) {
  FixedOracle oracle(17);
  DecisionLog log;
  Decisions decisions(oracle, log);
  const std::uint32_t only[] = {9};
  EXPECT_EQ(decisions.choose(ChoiceKind::next_fiber, only), 0u);
  EXPECT_TRUE(log.decisions().empty());
}

TEST(Decisions, Answer_IsRecorded) {
  FixedOracle oracle(1);
  DecisionLog log;
  Decisions decisions(oracle, log);
  const std::uint32_t candidates[] = {4, 5, 6};
  EXPECT_EQ(decisions.choose(ChoiceKind::latency, candidates), 1u);
  ASSERT_EQ(log.decisions().size(), 1u);
  EXPECT_EQ(*log.decisions().begin(), (Decision{ChoiceKind::latency, 3, 1}));
}

TEST(Decisions, OutOfRangeOrNoCandidates_Throws) {
  FixedOracle oracle(3);
  DecisionLog log;
  Decisions decisions(oracle, log);
  const std::uint32_t candidates[] = {4, 5, 6};
  try {
    decisions.choose(ChoiceKind::fault, candidates);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "the oracle answered 3 to choice 'fault', which has candidates 0..2");
  }
  EXPECT_THROW(decisions.choose(ChoiceKind::fault, {}), std::logic_error);
}

TEST(Decisions, Weights_ReachTheOracleAndNotTheLog) {
  class WeighedOracle final : public Oracle {
   public:
    std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t> weights) override {
      given.assign(weights.begin(), weights.end());
      return 1;
    }
    std::vector<std::uint32_t> given;
  } oracle;
  DecisionLog weighed, plain;
  const std::uint32_t candidates[] = {0, 1}, weights[] = {999, 1};
  EXPECT_EQ(Decisions(oracle, weighed).choose(ChoiceKind::fault, candidates, weights), 1u);
  EXPECT_EQ(oracle.given, (std::vector<std::uint32_t>{999, 1}));
  EXPECT_EQ(Decisions(oracle, plain).choose(ChoiceKind::fault, candidates), 1u);
  EXPECT_EQ(oracle.given, std::vector<std::uint32_t>());
  EXPECT_EQ(weighed.hash(), plain.hash());
  EXPECT_EQ(*weighed.decisions().begin(), (Decision{ChoiceKind::fault, 2, 1}));
}

TEST(Decisions, WeightsThatDoNotFit_Throw) {
  FixedOracle oracle(0);
  DecisionLog log;
  Decisions decisions(oracle, log);
  const auto problem_of = [&](std::vector<std::uint32_t> weights) -> std::string {
    const std::uint32_t candidates[] = {4, 5, 6};
    try {
      decisions.choose(ChoiceKind::fault, candidates, weights);
      return "";
    } catch (const std::logic_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem_of({1, 2}), "choice 'fault' has 3 candidates and 2 weights; it takes one for each, or none");
  EXPECT_EQ(problem_of({0, 0, 0}), "choice 'fault' has weights that add up to 0; it takes 1 to 2^32 - 1");
  EXPECT_EQ(problem_of({~0u, 0, 1}), "choice 'fault' has weights that add up to 4294967296; it takes 1 to 2^32 - 1");
  EXPECT_EQ(problem_of({~0u, 0, 0}), "");
  EXPECT_EQ(log.decisions().size(), 1u);
}

// The same answers to different candidates are different runs.
TEST(DecisionLog, Hash_CoversCandidatesAndSteps) {
  const std::uint32_t one[] = {1, 2}, other[] = {1, 3};
  DecisionLog a, b, c;
  a.record(ChoiceKind::next_fiber, one, 1);
  b.record(ChoiceKind::next_fiber, other, 1);
  c.record(ChoiceKind::next_fiber, one, 1);
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_EQ(a.hash(), c.hash());
  a.note_step(1, kTimeZero);
  c.note_step(1, kTimeZero + std::chrono::nanoseconds(1));
  EXPECT_NE(a.hash(), c.hash());
  EXPECT_EQ(a.steps(), 1u);
}

}  // namespace
}  // namespace rehearse::exec
