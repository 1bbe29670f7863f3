// SPDX-License-Identifier: BSD-3-Clause
// The smallest test of a user, against the installed package.
#include <gtest/gtest.h>

#include <rehearse/rehearse.h>

TEST(Consumer, AllReduceAgrees) {
  rehearse::check({.ranks = 4}, [](rehearse::RankContext& ctx) {
    auto grad = torch::full({3}, static_cast<double>(ctx.rank()));
    ctx.group().allreduce(grad)->wait();
    EXPECT_EQ(grad[0].item<int>(), 0 + 1 + 2 + 3);
  });
}
