// SPDX-License-Identifier: BSD-3-Clause
// Contract: if ranks do not come back, the others go on without them from the last checkpoint. They get the result of a
// job that goes on from that checkpoint with the remaining ranks. A rank that comes back late joins the others.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "bit_equal.h"
#include "elastic_world.h"

namespace rehearse::test {
namespace {

constexpr int kRanksAtFirst = 3;
const elastic_ddp::Job kShrinkingJob{.steps = 4, .rows = 6, .save_every = 1};

elastic::Options with_two() {
  elastic::Options options;
  options.rendezvous.min_ranks = 2;
  options.rendezvous.last_call = std::chrono::milliseconds(1);
  return options;
}

// A run without faults. Three ranks train for `together` steps. For the remaining steps, all but rank `lost` train.
at::Tensor of_fewer_from(std::int64_t together, int lost) {
  at::Tensor parameters;
  World world(elastic_world({}, kRanksAtFirst));
  const auto report = world.run([&](RankContext& ctx) {
    ctx.generator().set_current_seed(1);
    elastic_ddp::Net net;
    torch::optim::SGD optimizer(net->parameters(), elastic_ddp::with_momentum());
    const auto train = [&](const Group& group, std::int64_t from, std::int64_t to) {
      DistributedDataParallel ddp(net, group);
      for (auto step = from; step < to; ++step) {
        elastic_ddp::train_step(ddp, optimizer, group, step, kShrinkingJob.rows);
      }
    };
    train(ctx.group(), 0, together);
    if (ctx.rank() == lost) return;
    std::vector<int> rest{0, 1, 2};
    rest.erase(rest.begin() + lost);
    train(ctx.new_local_group(rest), together, kShrinkingJob.steps);
    parameters = elastic_ddp::parameters_of(net);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return parameters;
}

TEST(Shrink, EveryCrash_EndsAsARunOfSoManyRanks) {
  int crashes = 0;
  for (int lost = 0; lost < kRanksAtFirst; ++lost) {
    for (int call = 1;; ++call) {
      const auto fault = fmt::format("crash rank={} call=#{} peers=disconnect", lost, call);
      const auto run = run_elastic(elastic_world({fault}, kRanksAtFirst), kShrinkingJob, with_two());
      if (!run.fired()) break;
      ++crashes;
      EXPECT_EQ(run.report.verdict, Verdict::ok) << fault << ": " << run.report.headline;
      EXPECT_EQ(run.report.rank_lines[static_cast<std::size_t>(lost)].state, RankOutcome::crashed);
      const auto expected = of_fewer_from(run.took_up_last(), lost);
      for (int rank = 0; rank < kRanksAtFirst; ++rank) {
        const auto& found = run.parameters[static_cast<std::size_t>(rank)];
        ASSERT_EQ(found.defined(), rank != lost) << fault;
        if (rank == lost) continue;
        EXPECT_THAT(found, BitEqual(expected)) << fault << ": rank " << rank;
      }
    }
  }
  EXPECT_GE(crashes, kRanksAtFirst * 2 * static_cast<int>(kShrinkingJob.steps));
}

// Rank 1 crashes. The other two go on, and let rank 1 join when it is back. So there are three rounds.
TEST(Shrink, RankThatComesBackLate_IsLetIn) {
  auto options = elastic_world({"crash rank=1 call=allreduce#3 peers=disconnect restart=20ms"}, kRanksAtFirst);
  options.compute.per_operator = std::chrono::microseconds(100);
  const auto run = run_elastic(options, {.steps = 20, .rows = 6, .save_every = 1}, with_two());
  EXPECT_TRUE(run.fired());
  expect_all_have(run, run.parameters[0], "a late return");
  ASSERT_EQ(run.took_up.size(), 3u);
  EXPECT_LT(run.took_up[0], run.took_up[1]);
  EXPECT_LT(run.took_up[1], run.took_up[2]);
}

// The job is over when rank 1 comes back.
TEST(Shrink, RankThatComesBackTooLate_LearnsOfIt) {
  const std::string fault = "crash rank=1 call=allreduce#3 peers=disconnect restart=1min";
  const auto run = run_elastic(elastic_world({fault}, kRanksAtFirst), kShrinkingJob, with_two());
  EXPECT_EQ(run.report.verdict, Verdict::ok) << run.report.headline;
  EXPECT_EQ(run.report.rank_lines[1].state, RankOutcome::returned);
  EXPECT_FALSE(run.parameters[1].defined());
  EXPECT_THAT(run.parameters[0], BitEqual(of_fewer_from(run.took_up_last(), 1)));
}

TEST(Survival, RankThatNeverComesBack_IsMissed) {
  const auto run =
      run_elastic(elastic_world({"crash rank=1 call=allreduce#3 peers=disconnect"}, kRanksAtFirst), kShrinkingJob);
  EXPECT_NE(run.report.verdict, Verdict::ok);
  EXPECT_NE(run.report.headline.find("round 1 of the rendezvous was not complete within 3600000 ms: it needs 3 of 3 "
                                     "ranks, and ranks 0,2 came"),
            std::string::npos)
      << run.report.headline;
}

TEST(Survival, MoreLossesThanRestarts_AreTheRanksFailure) {
  elastic::Options none;
  none.max_restarts = 0;
  const auto run =
      run_elastic(elastic_world({"crash rank=1 call=allreduce#3 peers=disconnect restart=5ms"}, kRanksAtFirst),
                  kShrinkingJob, none);
  EXPECT_EQ(run.report.verdict, Verdict::rank_failed);
  EXPECT_NE(run.report.headline.find("rank 1 closed the connection"), std::string::npos) << run.report.headline;
}

}  // namespace
}  // namespace rehearse::test
