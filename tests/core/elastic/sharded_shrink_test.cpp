// SPDX-License-Identifier: BSD-3-Clause
// Contract: if any rank of a sharded job crashes in any of its calls, the others take over its rows from the last
// checkpoint. They get the same bits as a job that goes on from that checkpoint with the remaining ranks. Except for
// rounding, this is also the result of a job that loses no rank.
#include <chrono>

#include <fmt/format.h>

#include "bit_equal.h"
#include "elastic_fsdp/training.h"
#include "elastic_world.h"

namespace rehearse::test {
namespace {

// Every number of ranks in these tests divides the number of rows. So a step has the same gradient, however many ranks
// share its rows.
const elastic_fsdp::Job kShardedJob{.steps = 3, .rows = 12, .save_every = 1};

elastic::Options with_fewer(int ranks) {
  elastic::Options options;
  options.rendezvous.min_ranks = ranks;
  options.rendezvous.last_call = std::chrono::milliseconds(1);
  return options;
}

ElasticRun run_sharded(const WorldOptions& options, const elastic::Options& elastic,
                       const elastic_fsdp::Job& job = kShardedJob) {
  return run_job(options, [&](RankContext& ctx) { return elastic_fsdp::train(ctx, job, elastic); });
}

// A run without faults. All ranks train for `together` steps. For the remaining steps, all but rank `lost` train. If
// `lost` is negative, no rank leaves.
at::Tensor of_fewer_from(int ranks, std::int64_t together, int lost) {
  at::Tensor parameters;
  std::vector<SavedRows> rows;
  const auto train = [&](const Group& group, std::int64_t from, std::int64_t to) {
    elastic_fsdp::Training training(group);
    if (from > 0) training.load(rows);
    for (auto step = from; step < to; ++step) training.step(step, kShardedJob.rows);
    if (to == kShardedJob.steps) parameters = training.parameters();
    return training.rows();
  };
  World world(elastic_world({}, ranks));
  const auto report = world.run([&](RankContext& ctx) {
    ctx.generator().set_current_seed(1);
    if (lost < 0) {
      train(ctx.group(), 0, kShardedJob.steps);
      return;
    }
    const auto own = train(ctx.group(), 0, together);
    rows.insert(rows.end(), own.begin(), own.end());
    ctx.group().barrier()->wait();
    if (ctx.rank() == lost) return;
    std::vector<int> rest;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank != lost) rest.push_back(rank);
    }
    ctx.generator().set_current_seed(1);
    train(ctx.new_local_group(rest), together, kShardedJob.steps);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return parameters;
}

double difference(const at::Tensor& one, const at::Tensor& other) {
  return ((one - other).abs().max() / other.abs().max()).item<double>();
}

// Crashes each rank in each of its calls. Returns the number of crashes.
int crash_everywhere(int ranks, const std::string& how) {
  const auto without = of_fewer_from(ranks, 0, -1);
  int crashes = 0;
  for (int lost = 0; lost < ranks; ++lost) {
    for (int call = 1;; ++call) {
      const auto fault = fmt::format("crash rank={} call=#{} {}", lost, call, how);
      const auto run = run_sharded(elastic_world({fault}, ranks), with_fewer(ranks - 1));
      if (!run.fired()) break;
      ++crashes;
      EXPECT_EQ(run.report.verdict, Verdict::ok) << fault << ": " << run.report.headline;
      const auto expected = of_fewer_from(ranks, run.took_up_last(), lost);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto& found = run.parameters[static_cast<std::size_t>(rank)];
        EXPECT_EQ(found.defined(), rank != lost) << fault;
        if (!found.defined() || rank == lost) continue;
        EXPECT_THAT(found, BitEqual(expected)) << fault << ": rank " << rank;
        EXPECT_LT(difference(found, without), 1e-14) << fault << ": rank " << rank;
      }
    }
  }
  return crashes;
}

// A step has at least this many calls. It gathers two units in the forward and at least one again in the backward, and
// reduces the gradients of both units.
constexpr int kCallsOfAStep = 5;

TEST(ShardedShrink, EveryCrashOfThree_EndsAsTwoWould) {
  EXPECT_GE(crash_everywhere(3, "peers=disconnect"), 3 * kCallsOfAStep * static_cast<int>(kShardedJob.steps));
}

TEST(ShardedShrink, EveryCrashOfFour_EndsAsThreeWould) {
  EXPECT_GE(crash_everywhere(4, "peers=disconnect"), 4 * kCallsOfAStep * static_cast<int>(kShardedJob.steps));
}

TEST(ShardedShrink, EveryCrashThatPeersLearnOfByTimeOuts_EndsAsTwoWould) {
  EXPECT_GE(crash_everywhere(3, "peers=timeout"), 3 * kCallsOfAStep * static_cast<int>(kShardedJob.steps));
}

// Two ranks are lost, one after the other: four ranks train, then three, then two.
TEST(ShardedShrink, TwoLosses_EndAsAllWould) {
  const auto without = of_fewer_from(4, 0, -1);
  int both = 0;
  for (int first = 6; first <= 18; first += 4) {
    for (int second = first + 1;; second += 3) {
      const std::vector<std::string> faults{fmt::format("crash rank=1 call=#{} peers=disconnect", first),
                                            fmt::format("crash rank=3 call=#{} peers=disconnect", second)};
      const auto run = run_sharded(elastic_world(faults, 4), with_fewer(2));
      if (!run.fired(1)) break;
      both += run.fired(0) ? 1 : 0;
      EXPECT_EQ(run.report.verdict, Verdict::ok) << faults[0] << faults[1] << ": " << run.report.headline;
      for (const std::size_t rank : {0, 2}) {
        ASSERT_TRUE(run.parameters[rank].defined()) << faults[0] << faults[1];
        EXPECT_LT(difference(run.parameters[rank], without), 1e-14) << faults[0] << faults[1];
      }
    }
  }
  EXPECT_GE(both, 16);
}

// Rank 1 crashes. The other two go on, and all three ranks share the rows again when rank 1 is back.
TEST(ShardedShrink, RankThatComesBackLate_IsLetIn) {
  auto options = elastic_world({"crash rank=1 call=_reduce_scatter_base#3 peers=disconnect restart=20ms"}, 3);
  options.compute.per_operator = std::chrono::microseconds(100);
  const auto run = run_sharded(options, with_fewer(2), {.steps = 20, .rows = 12, .save_every = 1});
  EXPECT_TRUE(run.fired());
  expect_all_have(run, run.parameters[0], "a late return");
  ASSERT_EQ(run.took_up.size(), 3u);
  EXPECT_LT(run.took_up[0], run.took_up[1]);
  EXPECT_LT(run.took_up[1], run.took_up[2]);
}

TEST(ShardedShrink, EachSchedule_EndsAsTwoWould) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string fault = "crash rank=0 call=_allgather_base#6 peers=disconnect";
    auto options = elastic_world({fault}, 3, seed);
    options.preempt = seed % 2 == 0;
    const auto run = run_sharded(options, with_fewer(2));
    EXPECT_EQ(run.report.verdict, Verdict::ok) << seed << ": " << run.report.headline;
    for (const std::size_t rank : {1, 2}) {
      ASSERT_TRUE(run.parameters[rank].defined()) << seed;
      EXPECT_THAT(run.parameters[rank], BitEqual(of_fewer_from(3, run.took_up_last(), 0))) << seed;
    }
  }
}

}  // namespace
}  // namespace rehearse::test
