// SPDX-License-Identifier: BSD-3-Clause
// A world's checkers with sharded models: they raise no false alarm, and find each mistake.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;

using Shards = std::map<int, std::vector<at::Tensor>>;  // by rank

rehearse::Report train_sharded(rehearse::WorldOptions options, Shards& result) {
  options.ranks = 3;
  rehearse::World world(options);
  return world.run([&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    torch::optim::SGD optimizer(fsdp.parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      fsdp.zero_grad();
      fsdp(batch_of(ctx.rank(), step)).square().mean().backward();
      fsdp.clip_grad_norm_(1);
      optimizer.step();
    }
    result[ctx.rank()] = copies(fsdp.parameters());
  });
}

TEST(FsdpCheckers, AllOfThem_FindNothingAndChangeNothing) {
  Shards plain, checked;
  EXPECT_EQ(train_sharded({}, plain).verdict, rehearse::Verdict::ok);
  rehearse::WorldOptions options;
  options.compute = {.flops_per_second = 1e9, .bytes_per_second = 1e9};
  options.checks = {.replicas = true, .finite = true, .explain = true};
  options.check_buffers = true;
  options.check_sharing = true;
  options.memory_bytes = std::uint64_t{1} << 30;
  const auto report = train_sharded(options, checked);
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  EXPECT_GT(report.checks.at("FSDP on group \"world\""), 0u);
  for (const auto& [rank, shards] : plain) EXPECT_THAT(checked.at(rank), BitEqual(shards)) << rank;
}

TEST(FsdpCheckers, NanInAShardsGradient_IsFoundInTheUnitsReduceScatter) {
  rehearse::World world({.ranks = 2, .checks = {.finite = true}});
  const auto report = world.run([](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto loss = fsdp(batch_of(ctx.rank(), 0)).square().mean();
    if (ctx.rank() == 1) loss = loss / 0.0 * 0.0;
    loss.backward();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline, HasSubstr("rank 1"));
  EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"third\": gradients"));
}

// Compares each step's gradients with those of one process that has the whole batch.
rehearse::Report check_gradients(int ranks, double factor, bool hybrid = false) {
  rehearse::World world({.ranks = ranks});
  return world.run([&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    const rehearse::DeviceMesh mesh(
        ctx, hybrid ? std::vector<std::int64_t>{2, ranks / 2} : std::vector<std::int64_t>{ranks});
    FullyShardedDataParallel fsdp(net, mesh, {.units = kEachLinear});
    torch::optim::SGD optimizer(fsdp.parameters(), 0.1);
    for (int step = 0; step < 2; ++step) {
      fsdp.zero_grad();
      (fsdp(batch_of(ctx.rank(), step)).square().sum() * factor).backward();
      ctx.check_gradients(fsdp, [&] {
        auto sum = at::zeros({}, at::kDouble);
        for (int rank = 0; rank < ctx.size(); ++rank) sum = sum + net(batch_of(rank, step)).square().sum();
        return sum / ctx.size();
      });
      optimizer.step();
      ctx.check_replicas(fsdp);
      ctx.check_finite(fsdp);
    }
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
  });
}

TEST(FsdpCheckers, Gradients_AreComparedWithTheRowsOfOneProcess) {
  for (const int ranks : {1, 2, 3, 8}) {
    const auto report = check_gradients(ranks, 1);
    EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
    EXPECT_EQ(report.checks.at("gradients"), 2u);
  }
  const auto hybrid = check_gradients(4, 1, /*hybrid=*/true);
  EXPECT_EQ(hybrid.verdict, rehearse::Verdict::ok) << brief(hybrid);
  EXPECT_EQ(hybrid.checks.at("gradients"), 2u);
  const auto wrong = check_gradients(4, 0.25);
  EXPECT_EQ(wrong.verdict, rehearse::Verdict::check_failed);
  EXPECT_EQ(
      wrong.headline,
      "gradients differ from those of one process in check #1: all 6 gradients are 0.25 times as large (= 1 / number "
      "of ranks): averaged twice (a loss divided by the number of ranks, and a reduction that divides, too)");
}

TEST(FsdpCheckers, Replicas_AreComparedRowByRow) {
  rehearse::World world({.ranks = 4});
  const auto report = world.run([](RankContext& ctx) {
    Mlp net;
    fill(*net);
    const rehearse::DeviceMesh mesh(ctx, {2, 2});
    FullyShardedDataParallel fsdp(net, mesh, {.units = kEachLinear});
    if (ctx.rank() == 3) {
      const at::NoGradGuard no_grad;
      fsdp.parameters()[2].add_(1);
    }
    ctx.check_replicas(fsdp);
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline,
              HasSubstr("replicas differ in check #1: ranks 1,3 have 2 different \"second.weight[8:16]\""));
}

TEST(FsdpCheckers, OutOfMemory_SaysWhichUnitsWereWhole) {
  rehearse::World world({.ranks = 2, .memory_bytes = 400'000});
  const auto report = world.run([](RankContext& ctx) {
    Mlp net(6, 128, 3);  // its layer "second" has 128 KiB
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .init_sync = false});
    std::vector<at::Tensor> hold = {at::ones({20'000}, at::kDouble)};
    fsdp(batch_of(0, 0));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::out_of_memory) << brief(report);
  EXPECT_THAT(brief(report), HasSubstr("while FSDP fills unit \"second\"; whole were: none"));
}

}  // namespace
