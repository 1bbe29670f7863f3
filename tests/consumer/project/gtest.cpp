// SPDX-License-Identifier: BSD-3-Clause
// A user's smallest test, against the installed package.
#include <gtest/gtest.h>

#include <iostream>

#include <rehearse/rehearse.h>
#include <rehearse/sim/report_writers.h>

TEST(Consumer, AllReduceAgrees) {
  rehearse::check({.ranks = 4}, [](rehearse::RankContext& ctx) {
    auto grad = torch::full({3}, static_cast<double>(ctx.rank()));
    ctx.group().allreduce(grad)->wait();
    EXPECT_EQ(grad[0].item<int>(), 0 + 1 + 2 + 3);
  });
}

// Rank 2 leaves the second call out. The test prints the report, in which consumer_test.cmake looks for source lines.
TEST(Consumer, ReportNamesPlaces) {
  const auto report = rehearse::run({.ranks = 3}, [](rehearse::RankContext& ctx) {
    ctx.group().barrier()->wait();
    if (ctx.rank() != 2) ctx.group().barrier()->wait();
  });
  EXPECT_TRUE(has_verdict(report, rehearse::Verdict::deadlock));
  std::cout << rehearse::sim::to_text(report);
}
