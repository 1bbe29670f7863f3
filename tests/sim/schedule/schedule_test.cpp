// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/schedule.h>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse_internal/sim/oracles.h>

// Contract: every fact about a scheduler (its name, its oracle, whether seeds count) comes from one table.

namespace rehearse::sim {
namespace {

std::vector<std::uint32_t> answers_of(Oracle& oracle) {
  const std::array<std::uint32_t, 4> candidates{0, 1, 2, 3};
  std::vector<std::uint32_t> answers;
  for (int i = 0; i < 64; ++i) answers.push_back(oracle.choose(ChoiceKind::next_fiber, candidates));
  return answers;
}

TEST(Schedule, Names_AreThoseOfScenarios) {
  std::vector<std::string> names;
  for (const auto schedule : all_schedules()) names.emplace_back(to_string(schedule));
  EXPECT_EQ(names, (std::vector<std::string>{"random", "round_robin", "pct"}));
}

TEST(Schedule, Oracles_DependOnTheSeedAsTheTableSays) {
  for (const auto schedule : all_schedules()) {
    const auto one = answers_of(*make_oracle(schedule, 1));
    EXPECT_EQ(one, answers_of(*make_oracle(schedule, 1))) << to_string(schedule);
    bool differs = false;
    for (std::uint64_t seed = 2; seed < 10; ++seed) differs |= one != answers_of(*make_oracle(schedule, seed));
    EXPECT_EQ(differs, depends_on_seed(schedule)) << to_string(schedule);
  }
}

// A seed from an old report must still give the same run.
TEST(Schedule, RandomAndRoundRobin_AreTheirOracles) {
  RandomOracle random(7);
  RoundRobinOracle round_robin;
  EXPECT_EQ(answers_of(*make_oracle(Schedule::random, 7)), answers_of(random));
  EXPECT_EQ(answers_of(*make_oracle(Schedule::round_robin, 7)), answers_of(round_robin));
}

TEST(Schedule, Text_SaysPreemptAndIsReadBack) {
  EXPECT_EQ(schedule_text(Schedule::random, false), "random");
  EXPECT_EQ(schedule_text(Schedule::round_robin, true), "round_robin+preempt");
  for (const auto schedule : all_schedules()) {
    for (const bool preempt : {false, true}) EXPECT_EQ(says_preempt(schedule_text(schedule, preempt)), preempt);
  }
}

}  // namespace
}  // namespace rehearse::sim
