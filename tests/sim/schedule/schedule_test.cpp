// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/schedule.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/sim/world_options.h>
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
  EXPECT_EQ(names,
            (std::vector<std::string>{"random", "round_robin", "pct", "pos", "deviations", "in_order", "reverse"}));
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

TEST(Strategy, Text_IsReadBack) {
  EXPECT_EQ(to_string(Strategy{}), "random");
  EXPECT_EQ(to_string(Strategy{.schedule = Schedule::round_robin, .preempt = true}), "round_robin+preempt");
  EXPECT_EQ(to_string(Strategy{Schedule::pct, {.depth = 2, .steps = 57}, true, kPatience}), "pct:2:57+time+preempt");
  EXPECT_EQ(to_string(Strategy{Schedule::pct, {.depth = 2}}), "pct:2");
  EXPECT_EQ(to_string(Strategy{.patience = std::chrono::milliseconds(5)}), "random+time=5ms");
  for (const auto schedule : all_schedules()) {
    for (const bool preempt : {false, true}) {
      for (const auto patience : {VirtualDuration(0), VirtualDuration(1), kPatience}) {
        const Strategy strategy{.schedule = schedule, .preempt = preempt, .patience = patience};
        EXPECT_EQ(parse_strategy(to_string(strategy)), strategy) << to_string(strategy);
      }
    }
  }
}

TEST(Strategy, Additions_ComeInAnyOrder) {
  EXPECT_EQ(parse_strategy("pct:2:5+preempt+time=5ms"), parse_strategy("pct:2:5+time=5ms+preempt"));
  EXPECT_EQ(to_string(parse_strategy("random+preempt+time").value()), "random+time+preempt");
}

TEST(Strategy, OtherTexts_AreNone) {
  for (const auto* const text : {"", "rand", "random+", "random+time=", "random+time=0ns", "random+time+time",
                                 "pct:3:", "pct:65", "pct:65:5", "pct:0:5", "random:5", "pos+time=5", "pct:3:5 "}) {
    EXPECT_EQ(parse_strategy(text), std::nullopt) << text;
  }
}

TEST(Strategies, OfManySeeds_TakeTurnsAndKeepWhatIsSet) {
  WorldOptions options{.seed = 1};
  EXPECT_EQ(strategy_among_many(options, {}).schedule, Schedule::in_order);
  options.seed = 2;
  EXPECT_EQ(strategy_among_many(options, {}).schedule, Schedule::reverse);
  std::set<std::string> drawn;
  for (options.seed = 3; options.seed < 40; ++options.seed) drawn.insert(to_string(strategy_among_many(options, {})));
  EXPECT_EQ(drawn.size(), portfolio().size());
  options.preempt = false;
  options.patience = VirtualDuration(7);
  for (options.seed = 1; options.seed < 40; ++options.seed) {
    EXPECT_FALSE(strategy_among_many(options, {}).preempt);
    const auto patience = strategy_among_many(options, {}).patience;
    EXPECT_EQ(patience, options.seed > 2 ? VirtualDuration(7) : VirtualDuration(0)) << options.seed;
  }
  options.schedule = Schedule::pct;
  options.seed = 7 * 15;  // of the round of seven that assumes more
  EXPECT_EQ(strategy_among_many(options, {.plain = 12, .preempted = 34}).pct.steps, 48u);
  options.seed = 40;
  EXPECT_EQ(strategy_among_many(options, {.plain = 12, .preempted = 34}).pct.steps, 12u);
  options.preempt = true;
  EXPECT_EQ(strategy_among_many(options, {.plain = 12, .preempted = 34}).pct.steps, 34u);
  options.pct.depth = 5;
  EXPECT_EQ(strategy_among_many(options, {.plain = 12, .preempted = 34}).pct.depth, 5);
  options.pct.steps = 5;
  EXPECT_EQ(strategy_among_many(options, {.plain = 12, .preempted = 34}).pct.steps, 5u);
}

}  // namespace
}  // namespace rehearse::sim
