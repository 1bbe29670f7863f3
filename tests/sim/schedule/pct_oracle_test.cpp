// SPDX-License-Identifier: BSD-3-Clause
// Contract: PctOracle finds a bug of depth d with at least the probability that pct_oracle.h states. Its answers depend
// only on its seed and options. The programs here are orders of steps, without ranks.
#include <rehearse_internal/sim/pct_oracle.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse::sim {
namespace {

// The thread of each step, for threads with these numbers of steps.
std::vector<std::uint32_t> order_of(Oracle& oracle, std::vector<int> steps) {
  std::vector<std::uint32_t> order;
  for (;;) {
    std::vector<std::uint32_t> able;
    for (std::uint32_t thread = 0; thread < steps.size(); ++thread) {
      if (steps[thread] > 0) able.push_back(thread);
    }
    if (able.empty()) return order;
    const auto next = able.size() == 1 ? able.front() : able[oracle.choose(ChoiceKind::next_fiber, able)];
    --steps[next];
    order.push_back(next);
  }
}

// The position of the thread's step number `step`, counted from 1.
std::size_t place_of(const std::vector<std::uint32_t>& order, std::uint32_t thread, int step) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == thread && --step == 0) return i;
  }
  return order.size();
}

constexpr int kSeeds = 4'000;

// The number of seeds that must find a bug: the bound, less three standard deviations.
int at_least(double probability) {
  const double expected = kSeeds * probability;
  return static_cast<int>(expected - 3 * std::sqrt(expected));
}

int seeds_that_find(const PctOptions& options, const std::vector<int>& steps,
                    const std::function<bool(const std::vector<std::uint32_t>&)>& is_bug) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    PctOracle oracle(seed, options);
    found += is_bug(order_of(oracle, steps)) ? 1 : 0;
  }
  return found;
}

std::vector<std::uint64_t> answers(std::uint64_t seed, const PctOptions& options) {
  PctOracle oracle(seed, options);
  const auto order = order_of(oracle, {30, 30, 30});
  return {order.begin(), order.end()};
}

TEST(Pct, IsAFunctionOfSeedAndOptions) {
  EXPECT_EQ(answers(7, {3, 90}), answers(7, {3, 90}));
  bool other_seed = false, other_depth = false;
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    other_seed |= answers(seed, {3, 90}) != answers(seed + 1, {3, 90});
    other_depth |= answers(seed, {3, 90}) != answers(seed, {1, 90});
  }
  EXPECT_TRUE(other_seed);
  EXPECT_TRUE(other_depth);
}

// Depth 1: the last thread ends before the first one begins. A random walk would have to pass over the first thread in
// about 300 steps in a row.
TEST(Pct, Depth1_IsFoundByOneSeedInN) {
  const std::vector<int> steps{100, 100, 100, 100};
  const auto is_bug = [](const auto& order) { return place_of(order, 3, 100) < place_of(order, 0, 1); };
  EXPECT_GE(seeds_that_find({1, 400}, steps, is_bug), at_least(1. / 4));
  int by_chance = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomOracle random(seed);
    by_chance += is_bug(order_of(random, steps)) ? 1 : 0;
  }
  EXPECT_EQ(by_chance, 0);
}

// Depth 2: thread 1 runs all of its steps between two certain steps of thread 0.
TEST(Pct, Depth2_IsFoundAsOftenAsTheBoundSays) {
  const std::vector<int> steps{10, 10};
  const auto is_bug = [](const auto& order) {
    return place_of(order, 0, 5) < place_of(order, 1, 1) && place_of(order, 1, 10) < place_of(order, 0, 6);
  };
  EXPECT_GE(seeds_that_find({2, 20}, steps, is_bug), at_least(1. / (2 * 20)));
  EXPECT_EQ(seeds_that_find({1, 20}, steps, is_bug), 0) << "no change of priority, no bug of depth 2";
}

TEST(Pct, Depth3_IsFoundAsOftenAsTheBoundSays) {
  const std::vector<int> steps{5, 5, 5};
  // Thread 0 stops after its second step, thread 1 after its third. Thread 0 ends before thread 1 continues.
  const auto is_bug = [](const auto& order) {
    return place_of(order, 0, 2) < place_of(order, 1, 1) && place_of(order, 1, 3) < place_of(order, 0, 3) &&
           place_of(order, 0, 5) < place_of(order, 1, 4);
  };
  EXPECT_GE(seeds_that_find({3, 15}, steps, is_bug), std::max(1, at_least(1. / (3 * 15 * 15))));
}

TEST(Pct, AFiberThatYieldsForEver_LetsTheOthersRun) {
  PctOracle oracle(1, {1, 1'000});
  const std::vector<std::uint32_t> both{0, 1};
  std::vector<int> taken(2);
  for (int i = 0; i < 100'000; ++i) ++taken[oracle.choose(ChoiceKind::next_fiber, both)];
  EXPECT_GT(std::min(taken[0], taken[1]), 40'000);
}

TEST(Pct, OtherChoices_AreThoseOfTheRandomOracle) {
  PctOracle pct(5, {3, 100});
  RandomOracle random(5);
  const std::vector<std::uint32_t> candidates{0, 1, 2, 3, 4};
  for (int i = 0; i < 50; ++i) {
    pct.choose(ChoiceKind::next_fiber, candidates);
    EXPECT_EQ(pct.choose(ChoiceKind::latency, candidates), random.choose(ChoiceKind::latency, candidates));
  }
}

}  // namespace
}  // namespace rehearse::sim
