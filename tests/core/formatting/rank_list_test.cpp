// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gtest/gtest.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse {
namespace {

TEST(RankList, Runs_AreFoldedInTheOrderGiven) {
  EXPECT_EQ(describe_ranks(std::vector{2}), "rank 2");
  EXPECT_EQ(describe_ranks(std::vector{0, 1, 3}), "ranks 0-1,3");
  EXPECT_EQ(describe_ranks(std::vector{0, 1, 2, 3}), "ranks 0-3");
  EXPECT_EQ(describe_ranks(std::vector{5, 3}), "ranks 5,3");
  EXPECT_EQ(rank_numbers({}), "");
}

TEST(RankList, ManySeparateRanks_AreCutWithACount) {
  std::vector<int> even;
  for (int rank = 0; rank < 1024; rank += 2) even.push_back(rank);
  EXPECT_EQ(describe_ranks(even), "ranks 0,2,4,6,8,10,12,14 and 504 more");
}

}  // namespace
}  // namespace rehearse
