// SPDX-License-Identifier: BSD-3-Clause
// Contract: a job may run elastically more than once. Each run has rounds and checkpoints of its own, and a rank that
// is lost in the second run comes back to that run.
#include "bit_equal.h"
#include "elastic_world.h"

namespace rehearse::test {
namespace {

constexpr int kRanksOfBoth = 3;

struct TwoRuns {
  Report report;
  std::vector<at::Tensor> first, second;  // by rank: the parameters after each run
};

TwoRuns run_two(const std::vector<std::string>& faults) {
  TwoRuns runs;
  runs.first.resize(kRanksOfBoth);
  runs.second.resize(kRanksOfBoth);
  World world(elastic_world(faults, kRanksOfBoth));
  runs.report = world.run([&](RankContext& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    const elastic_ddp::Job train{.steps = 3, .rows = 6, .save_every = 1};
    const elastic_ddp::Job tune{.steps = 5, .rows = 3, .save_every = 1};
    runs.first[rank] = elastic_ddp::train(ctx, train, {});
    runs.second[rank] = elastic_ddp::train(ctx, tune, {});
  });
  return runs;
}

TEST(TwoRuns, BothAreMade) {
  const auto runs = run_two({});
  EXPECT_EQ(runs.report.verdict, Verdict::ok) << runs.report.headline;
  for (int rank = 0; rank < kRanksOfBoth; ++rank) {
    ASSERT_TRUE(runs.first[rank].defined());
    ASSERT_TRUE(runs.second[rank].defined());
    EXPECT_FALSE(at::equal(runs.first[rank], runs.second[rank]));
    EXPECT_THAT(runs.second[rank], BitEqual(runs.second[0]));
  }
}

TEST(TwoRuns, ACrashInTheSecond_IsSurvivedThere) {
  const auto expected = run_two({});
  int fired = 0;
  constexpr int kCalls = 10;  // 4 of them in the first run
  for (int call = 1; call <= kCalls; ++call) {
    const auto fault = "crash rank=1 call=allreduce#" + std::to_string(call) + " peers=disconnect restart=1ms";
    const auto runs = run_two({fault});
    fired += runs.report.faults.at(0).times > 0 ? 1 : 0;
    EXPECT_EQ(runs.report.verdict, Verdict::ok) << fault << ": " << runs.report.headline;
    for (int rank = 0; rank < kRanksOfBoth; ++rank) {
      ASSERT_TRUE(runs.second[rank].defined()) << fault;
      EXPECT_THAT(runs.second[rank], BitEqual(expected.second[rank])) << fault;
    }
  }
  EXPECT_EQ(fired, kCalls);
}

}  // namespace
}  // namespace rehearse::test
