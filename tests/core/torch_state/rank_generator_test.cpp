// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "core/torch_state/hand_fibers.h"

namespace rehearse::torch_state {
namespace {

using rehearse::test::BitEqual;

at::Tensor draws_of_seed(std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::rand({8}, generator);
}

TEST(RankGenerator, SameSeed_EachRankDrawsWhatAProcessWithThatSeedDraws) {
  TorchRankState state({.seed = 5});
  HandFibers fibers(state, 2);
  fibers.run(0, [] { EXPECT_THAT(at::rand({4}), BitEqual(draws_of_seed(5).slice(0, 0, 4))); });
  fibers.run(1, [] { EXPECT_THAT(at::rand({8}), BitEqual(draws_of_seed(5))); });
  fibers.run(0, [] { EXPECT_THAT(at::rand({4}), BitEqual(draws_of_seed(5).slice(0, 4, 8))); });
}

TEST(RankGenerator, SeedsByRank_DifferBetweenRanksAndNotBetweenWorlds) {
  std::vector<at::Tensor> draws;
  for (int world = 0; world < 2; ++world) {
    TorchRankState state({.seed = 5, .same_seed_on_all_ranks = false});
    HandFibers fibers(state, 2);
    for (int rank : {0, 1}) fibers.run(rank, [&] { draws.push_back(at::rand({8})); });
  }
  EXPECT_FALSE(draws[0].equal(draws[1]));
  EXPECT_THAT(draws[0], BitEqual(draws[2]));
  EXPECT_THAT(draws[1], BitEqual(draws[3]));
}

TEST(RankGenerator, ManualSeedOnOneRank_LeavesOthersAndTheHostAlone) {
  const at::Generator host = at::detail::getDefaultCPUGenerator();
  const std::uint64_t host_seed = host.current_seed();
  TorchRankState state({.seed = 5});
  HandFibers fibers(state, 2);
  fibers.run(0, [] { at::manual_seed(9); });
  fibers.run(1, [] { EXPECT_THAT(at::rand({8}), BitEqual(draws_of_seed(5))); });
  fibers.run(0, [] { EXPECT_THAT(at::rand({8}), BitEqual(draws_of_seed(9))); });
  EXPECT_EQ(at::detail::getDefaultCPUGenerator(), host);
  EXPECT_EQ(host.current_seed(), host_seed);
}

TEST(RankGenerator, Handle_IsTheGeneratorOfAllFibersOfTheRank) {
  TorchRankState state({.seed = 5});
  EXPECT_THROW(state.generator(0), std::out_of_range);
  HandFibers fibers(state, 1);
  state.generator(0).set_current_seed(11);
  fibers.run(0, [] { EXPECT_THAT(at::rand({8}), BitEqual(draws_of_seed(11))); });

  std::vector<std::byte> helper(state.image_bytes()), here(state.image_bytes());
  state.create_image(helper.data(), 0, 1);
  state.exchange(here.data(), helper.data());
  EXPECT_EQ(at::detail::getDefaultCPUGenerator(), state.generator(0));
  state.end_fiber(0, 1);
  state.exchange(helper.data(), here.data());
}

TEST(RankGenerator, NextWorldOfTheSameObject_StartsFromTheSeedAgain) {
  TorchRankState state({.seed = 5});
  for (int world = 0; world < 2; ++world) {
    HandFibers fibers(state, 1);
    fibers.run(0, [] { EXPECT_THAT(at::rand({8}), BitEqual(draws_of_seed(5))); });
  }
}

}  // namespace
}  // namespace rehearse::torch_state
