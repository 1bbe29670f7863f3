// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/random_stream.h>

#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse_internal/sim/oracles.h>

namespace rehearse::sim {
namespace {

// The generators must give their published outputs, because a seed in a bug report must mean the same run forever.
TEST(SplitMix64, KnownSeeds_PublishedOutputs) {
  SplitMix64 zero(0);
  EXPECT_EQ(zero.next(), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(zero.next(), 0x6E789E6AA1B965F4ull);
  EXPECT_EQ(zero.next(), 0x06C45D188009454Full);
  SplitMix64 other(1477776061723855037ull);
  EXPECT_EQ(other.next(), 1985237415132408290ull);
  EXPECT_EQ(other.next(), 2979275885539914483ull);
  EXPECT_EQ(other.next(), 13511426838097143398ull);
}

TEST(RandomStream, KnownState_PublishedOutputs) {
  RandomStream stream(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  const std::array<std::uint64_t, 10> published{
      11520,
      0,
      1509978240,
      1215971899390074240ull,
      1216172134540287360ull,
      607988272756665600ull,
      16172922978634559625ull,
      8476171486693032832ull,
      10595114339597558777ull,
      2904607092377533576ull,
  };
  for (const std::uint64_t word : published) EXPECT_EQ(stream.next(), word);
}

TEST(RandomStream, SeedAndStream_AreNotInterchangeable) {
  const std::array<std::uint64_t, 5> first{
      RandomStream(1, 2).next(), RandomStream(2, 1).next(), RandomStream(1, 1).next(),
      RandomStream(2, 2).next(), RandomStream(0, 3).next(),
  };
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = i + 1; j < first.size(); ++j) EXPECT_NE(first[i], first[j]) << i << ", " << j;
  }
  EXPECT_EQ(RandomStream(7, 1).next(), RandomStream(7, 1).next());
}

TEST(RandomStream, Below_StaysInBoundsAndReachesEveryNumber) {
  RandomStream stream(1, 0);
  for (const std::uint32_t bound : {1u, 2u, 3u, 7u, 16u, 1000u}) {
    std::vector<int> seen(bound);
    for (std::uint32_t draw = 0; draw < 100 * bound; ++draw) {
      const std::uint32_t number = stream.below(bound);
      ASSERT_LT(number, bound);
      ++seen[number];
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), static_cast<int>(100 * bound));
    for (std::uint32_t number = 0; number < bound; ++number) EXPECT_GT(seen[number], 0) << bound << ": " << number;
  }
}

// Index 1 gets three of four draws. The exact count for this seed's 4,000 draws must stay the same forever.
TEST(RandomStream, Weighted_DrawsAsOftenAsTheWeightsSay) {
  RandomStream stream(3, 0), plain(3, 0);
  const std::array<std::uint32_t, 5> weights{0, 3, 0, 1, 0};
  std::array<int, 5> seen{};
  for (int draw = 0; draw < 4000; ++draw) {
    const auto index = stream.weighted(weights);
    ++seen[index];
    EXPECT_EQ(index, plain.below(4) < 3 ? 1u : 3u);  // the same draw, as a whole number
  }
  EXPECT_EQ(seen, (std::array<int, 5>{0, 2991, 0, 1009, 0}));
}

TEST(RandomStream, WeightedUpToTheLargestSum_StaysInBounds) {
  RandomStream stream(4, 0);
  const std::array<std::uint32_t, 2> weights{1, 0xFFFFFFFEu};
  for (int draw = 0; draw < 1000; ++draw) EXPECT_EQ(stream.weighted(weights), 1u);
  const std::array<std::uint32_t, 1> one{1};
  EXPECT_EQ(stream.weighted(one), 0u);
}

std::vector<std::uint32_t> answers(Oracle& oracle, ChoiceKind kind, int count) {
  const std::vector<std::uint32_t> candidates{10, 11, 12, 13, 14, 15, 16, 17};
  std::vector<std::uint32_t> result;
  for (int i = 0; i < count; ++i) result.push_back(oracle.choose(kind, candidates));
  return result;
}

// These numbers are a contract: users have written down seeds.
TEST(RandomOracle, SeedOne_SameAnswersForEver) {
  RandomOracle oracle(1);
  EXPECT_EQ(answers(oracle, ChoiceKind::next_fiber, 12),
            (std::vector<std::uint32_t>{7, 6, 1, 4, 6, 0, 3, 7, 3, 1, 0, 3}));
}

TEST(RandomOracle, KindsOfChoice_DoNotDisturbEachOther) {
  RandomOracle undisturbed(5), disturbed(5);
  const auto expected = answers(undisturbed, ChoiceKind::next_fiber, 40);
  std::vector<std::uint32_t> found;
  for (int i = 0; i < 40; ++i) {
    answers(disturbed, ChoiceKind::latency, i % 3);
    found.push_back(answers(disturbed, ChoiceKind::next_fiber, 1)[0]);
  }
  EXPECT_EQ(found, expected);
  EXPECT_NE(answers(undisturbed, ChoiceKind::fault, 40), expected);
}

// Weights that are all 1 must draw like no weights, so that seeds keep their meaning if a choice gets weights.
TEST(RandomOracle, EqualWeightsOfOne_DrawAsWithoutWeights) {
  RandomOracle weighed(1), plain(1);
  const std::vector<std::uint32_t> candidates{10, 11, 12, 13, 14, 15, 16, 17}, ones(8, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(weighed.choose(ChoiceKind::fault, candidates, ones), plain.choose(ChoiceKind::fault, candidates));
  }
}

TEST(RandomOracle, WeightOfZero_IsNeverDrawn) {
  RandomOracle oracle(1);
  const std::array<std::uint32_t, 2> candidates{0, 1}, never{1, 0}, always{0, 1};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(oracle.choose(ChoiceKind::fault, candidates, never), 0u);
    EXPECT_EQ(oracle.choose(ChoiceKind::fault, candidates, always), 1u);
  }
}

// A fixed order makes no draws: the first candidate is the answer.
TEST(RoundRobinOracle, Weights_AreNotLookedAt) {
  RoundRobinOracle oracle;
  const std::array<std::uint32_t, 2> candidates{0, 1}, weights{0, 1};
  EXPECT_EQ(oracle.choose(ChoiceKind::fault, candidates, weights), 0u);
}

TEST(RoundRobinOracle, AnyChoice_TakesTheFirst) {
  RoundRobinOracle oracle;
  EXPECT_EQ(answers(oracle, ChoiceKind::next_fiber, 5), (std::vector<std::uint32_t>(5, 0)));
  EXPECT_EQ(answers(oracle, ChoiceKind::latency, 5), (std::vector<std::uint32_t>(5, 0)));
}

}  // namespace
}  // namespace rehearse::sim
