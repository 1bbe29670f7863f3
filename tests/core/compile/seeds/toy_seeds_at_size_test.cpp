// SPDX-License-Identifier: BSD-3-Clause
// The seed tests with Toy at PyTorch's size, under the real Reducer or sharded: 50 million parameters, buckets of 25
// MB.
#include <torch/nn/modules/linear.h>

#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/sharded_training.h"
#include "core/compile/seeds/toy_training.h"

namespace rehearse::compiler {
namespace {

ToyTraining seed_toy(double bucket_cap_mb, bool optimize_ddp) {
  return {.shape = {},
          .ddp = {.bucket_cap_mb = bucket_cap_mb},
          .compile = {.backend = "aot_eager", .optimize_ddp = optimize_ddp},
          .steps = 2};
}

TEST_F(TestMultiProcAtSeedSize, test_ddp_baseline_aot_eager_multiprocess) {
  on_ranks([this](RankContext& ctx) {
    ToyTraining training = seed_toy(cap_mb(), false);
    training.compile.group = ctx.group();
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, training);
    expect_listed(stats, compiles, ctx.rank());
  });
}

TEST_F(TestMultiProcAtSeedSize, test_fsdp_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const ShardedTraining training{.fsdp = {.units = UnitPolicy::of_type<torch::nn::LinearImpl>()}, .steps = 2};
    const auto [told, compiles] =
        expect_sharded_like_eager(ctx, [] { return test::Toy(); }, training, random_input(ctx, {20, 10}));
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

TEST_F(TestSingleProcAtSeedSize, test_ddp_baseline_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, seed_toy(cap_mb(), false));
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProcAtSeedSize, test_ddp_baseline_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, seed_toy(cap_mb(), false));
    expect_listed(stats, compiles, ctx.rank());
  });
}

TEST_F(TestSingleProcAtSeedSize, test_graph_split) {
  on_ranks([this](RankContext& ctx) {
    const auto stats = expect_split_toy_like_eager(ctx, {}, cap_mb());
    expect_listed(stats, {1}, ctx.rank());
  });
}
TEST_F(TestSingleProcAtSeedSize, test_graph_split_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, seed_toy(cap_mb(), true));
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProcAtSeedSize, test_aot_autograd) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, seed_toy(cap_mb(), true));
    expect_listed(stats, compiles, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
