// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <rehearse/comm/errors.h>

#include "faulty_world.h"

namespace rehearse::test {

// Ranks wait until all are back, and reduce in a new group.
inline void reduce_anew(RankContext& ctx) {
  std::vector<int> all;
  std::vector<std::string> back;
  for (int rank = 0; rank < ctx.size(); ++rank) {
    all.push_back(rank);
    back.push_back("back/" + std::to_string(rank));
  }
  ctx.store()->set(back[static_cast<std::size_t>(ctx.rank())], "yes");
  ctx.store()->wait(back);
  auto value = at::full({2}, static_cast<double>(ctx.rank()), at::kDouble);
  ctx.new_local_group(all, "again").allreduce(value)->wait();
  ctx.expect(value.sum().item<double>() == ctx.size() * (ctx.size() - 1), "the new group's sum is right");
}

inline void train_and_survive(RankContext& ctx) {
  try {
    if (ctx.incarnation() == 0) train(ctx);
  } catch (const CommError& error) {
    EXPECT_EQ(error.ranks(), std::vector<int>{3});
  }
  reduce_anew(ctx);
}

// Checks a run of train_and_survive() whose first fault ends rank 3 in all-reduce 12 with restart=5ms.
inline void expect_back_after_5_ms(const Report& report) {
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(fired(report), R"(rank 3 in allreduce #12 on group "world")");
  const auto& firing = report.faults[0].fired[0];
  EXPECT_EQ(firing.began_again, firing.at + std::chrono::milliseconds(5));
  for (const auto& line : report.rank_lines) EXPECT_EQ(line.state, RankOutcome::returned);
  EXPECT_EQ(report.checks.at("the new group's sum is right"), 4u);
  EXPECT_GE(report.end_time, *firing.began_again);
}

}  // namespace rehearse::test
