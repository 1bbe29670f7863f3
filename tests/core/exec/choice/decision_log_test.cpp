// SPDX-License-Identifier: BSD-3-Clause
// Contract: a log that records nothing stays unchanged whatever is chosen, and the answers are still the oracle's.
#include <rehearse/exec/decision_log.h>

#include <array>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

TEST(DecisionLog, KeepNothing_LeavesChoicesStepsAndHash) {
  DecisionLog log;
  const auto hash_before = log.hash();
  log.keep_nothing();
  SeededOracle asked(7);
  SeededOracle same(7);
  Decisions decisions(asked, log);
  constexpr std::array<std::uint32_t, 3> candidates{4, 5, 6};
  for (int k = 0; k < 100; ++k) {
    EXPECT_EQ(decisions.choose(ChoiceKind::next_fiber, candidates),
              same.choose(ChoiceKind::next_fiber, candidates, {}));
    log.note_step(4, at(1ms));
  }
  EXPECT_EQ(log.decisions().size(), 0u);
  EXPECT_EQ(log.steps(), 0u);
  EXPECT_EQ(log.hash(), hash_before);
}

TEST(DecisionLog, KeepNothingInTheMiddle_KeepsWhatWasThere) {
  DecisionLog log;
  SeededOracle oracle(7);
  Decisions decisions(oracle, log);
  constexpr std::array<std::uint32_t, 2> candidates{0, 1};
  decisions.choose(ChoiceKind::next_fiber, candidates);
  log.note_step(1, at(1ms));
  const auto hash = log.hash();
  log.keep_nothing();
  decisions.choose(ChoiceKind::next_fiber, candidates);
  log.note_step(1, at(2ms));
  EXPECT_EQ(log.decisions().size(), 1u);
  EXPECT_EQ(log.steps(), 1u);
  EXPECT_EQ(log.hash(), hash);
}

TEST(DecisionLog, KeepNothing_IsNoMatterToARun) {
  World w(3);
  w.log.keep_nothing();
  const auto hash_before = w.log.hash();
  int yields = 0;
  const auto outcome = w.run([&](int) {
    for (int k = 0; k < 10; ++k, ++yields) this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(yields, 30);
  EXPECT_EQ(outcome.switches, 33u);
  EXPECT_EQ(w.log.hash(), hash_before);
}

}  // namespace
}  // namespace rehearse::exec::test
