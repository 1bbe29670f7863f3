// SPDX-License-Identifier: BSD-3-Clause
// Contract: the report of a hang inside DDP's backward names the missing rank, the collective and the user's line,
// although ranks wait there for futures, not for works. The verdict of a correct program is OK.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ddp_worlds.h"
#include "world_report.h"

namespace rehearse::golden {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using namespace golden_worlds;

// Expects that all other ranks wait for the last rank, in the same all-reduce of their backward.
void expect_the_last_rank_missing(const World::Body& body, const std::string& function) {
  for (const int ranks : {2, 3, 8}) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const auto report = run_world(body, ranks, seed);
      EXPECT_EQ(report.verdict, Verdict::deadlock) << report.headline;
      EXPECT_THAT(report.headline, HasSubstr("allreduce #"));
      EXPECT_THAT(report.headline, HasSubstr("rank " + std::to_string(ranks - 1)));
      EXPECT_EQ(report.rank_lines.back().state, RankOutcome::returned);
      for (int rank = 0; rank + 1 < ranks; ++rank) {
        const auto& line = report.rank_lines[static_cast<std::size_t>(rank)];
        EXPECT_EQ(line.state, RankOutcome::blocked);
        EXPECT_THAT(line.doing, StartsWith("allreduce #"));
        EXPECT_EQ(line.waits_for, std::vector{ranks - 1});
        EXPECT_THAT(line.where.text, StartsWith("ddp_worlds.cpp:"));
        EXPECT_THAT(line.where.text, HasSubstr(function));
      }
    }
  }
}

TEST(DdpWorlds, RankReturnsEarly_IsTheOneMissing) {
  expect_the_last_rank_missing(returns_a_step_early, "returns_a_step_early");
  expect_golden_report(run_world(returns_a_step_early, 4), "ddp_returns_early");
}

TEST(DdpWorlds, RankSkipsItsLastBackward_IsTheOneMissing) {
  expect_the_last_rank_missing(skips_the_last_backward, "train_without_backward_in");
  expect_golden_report(run_world(skips_the_last_backward, 4), "ddp_skips_last_backward");
}

TEST(DdpWorlds, RankSkipsABackwardOnTheWay_IsTheOneMissingInTheEnd) {
  expect_the_last_rank_missing(skips_a_backward_on_the_way, "train_without_backward_in");
  expect_golden_report(run_world(skips_a_backward_on_the_way, 4), "ddp_skips_backward");
}

TEST(DdpWorlds, RankLeavesALayerOut_IsTheOneMissing) {
  expect_the_last_rank_missing(leaves_a_layer_out, "train_leaving_out");
  expect_golden_report(run_world(leaves_a_layer_out, 4), "ddp_unused_parameter");
}

TEST(DdpWorlds, RankLeavesALayerOutAndGoesOn_FailsInDdpWhileTheOthersWaitForIt) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(leaves_a_layer_out_before_the_last_step, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_THAT(report.headline, StartsWith("rank 2: Expected to have finished reduction in the prior iteration"));
    EXPECT_EQ(report.rank_lines[2].state, RankOutcome::failed);
  }
  expect_golden_report(run_world(leaves_a_layer_out_before_the_last_step, 4), "ddp_unused_parameter_next_step");
}

TEST(DdpWorlds, BucketsOfOtherParameters_AreAMismatchThatNamesThem) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = run_world(registers_layers_in_another_order, 3, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
    EXPECT_THAT(report.headline, StartsWith("rank 2 called allreduce"));
    EXPECT_THAT(report.headline, HasSubstr("label"));
  }
  expect_golden_report(run_world(registers_layers_in_another_order, 4), "ddp_other_buckets");
}

TEST(DdpWorlds, CorrectWithUnusedParametersAndSubGroups_IsSilent) {
  for (const int ranks : {2, 5, 8}) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const auto report = run_world(leaves_a_layer_out_as_agreed, ranks, seed);
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
      EXPECT_GT(report.operations, 0u);
    }
  }
}

}  // namespace
}  // namespace rehearse::golden
