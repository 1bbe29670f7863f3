// SPDX-License-Identifier: BSD-3-Clause
// Contract: draws_between() returns how many random numbers were drawn between two states of a generator. It returns
// nothing if the second state is not reached from the first one.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "checks/draws.h"

namespace {

using namespace rehearse::checks;

at::Generator generator_of(std::uint64_t seed, int drawn) {
  auto generator = at::detail::createCPUGenerator(seed);
  auto* const cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  for (int i = 0; i < drawn; ++i) cpu->random();
  return generator;
}

GeneratorState state_of(std::uint64_t seed, int drawn) { return GeneratorState::of(generator_of(seed, drawn)); }

TEST(DrawsBetween, CountsWhatWasDrawn) {
  for (const int from : {0, 1, 5, 623, 624, 625, 2000}) {
    for (const int more : {1, 17, 623, 624, 625, 1248, 10000}) {
      EXPECT_EQ(draws_between(state_of(7, from), state_of(7, from + more)), static_cast<std::uint64_t>(more))
          << from << " " << more;
    }
  }
}

TEST(DrawsBetween, AnotherSequence_IsNeverMet) {
  EXPECT_EQ(draws_between(state_of(7, 0), state_of(8, 5)), std::nullopt);
  EXPECT_EQ(draws_between(state_of(7, 5), state_of(7, 0)), std::nullopt);
}

// The generator keeps the second number of each pair of normal numbers for a later draw. So generators at the same
// place in the sequence may still differ.
TEST(GeneratorState, KnowsTheNormalThatIsKept) {
  auto one = generator_of(3, 0), other = generator_of(3, 0);
  EXPECT_TRUE(GeneratorState::of(one) == GeneratorState::of(other));
  at::randn({1}, one);
  at::rand({2}, other);
  EXPECT_FALSE(GeneratorState::of(one) == GeneratorState::of(other));
}

}  // namespace
