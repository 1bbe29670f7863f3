// SPDX-License-Identifier: BSD-3-Clause
// Seed tests that wrap the model in DDP, with LibTorch's Reducer in a simulation.
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/compile/split_by_ddp.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/toy_training.h"
#include "models/custom.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

void on_worlds(const World::Body& body) {
  for (const int ranks : {1, 2, 8}) {
    SCOPED_TRACE(ranks);
    World world({.ranks = ranks});
    const Report report = world.run(body);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

Trained train_toy(RankContext& ctx, double bucket_cap_mb, bool optimize_ddp) {
  return expect_toy_trains_like_eager(ctx, {.ddp = {.bucket_cap_mb = bucket_cap_mb},
                                            .compile = {.backend = "aot_eager", .optimize_ddp = optimize_ddp}});
}

TEST_F(TestSingleProc, test_aot_autograd) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = train_toy(ctx, cap_mb(), true);
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProc, test_graph_split_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = train_toy(ctx, cap_mb(), true);
    expect_listed(stats, compiles, ctx.rank());
  });
}

// With optimize_ddp off there is one graph, whatever the buckets.
TEST_F(TestMultiProc, test_ddp_baseline_aot_eager_multiprocess) {
  on_ranks([this](RankContext& ctx) {
    const CompileOptions options{.backend = "aot_eager", .group = ctx.group(), .optimize_ddp = false};
    const auto [stats, compiles] =
        expect_toy_trains_like_eager(ctx, {.ddp = {.bucket_cap_mb = cap_mb()}, .compile = options});
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProc, test_ddp_baseline_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = train_toy(ctx, cap_mb(), false);
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProc, test_ddp_baseline_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = train_toy(ctx, cap_mb(), false);
    expect_listed(stats, compiles, ctx.rank());
  });
}

// Trains with DDP options that change the module's inputs or outputs, or the layout of gradients. Expects one
// compilation, and `graphs` graphs.
void expect_trains_with(DistributedDataParallelOptions ddp, std::int64_t graphs) {
  ddp.bucket_cap_mb = 0.3;
  on_worlds([&](RankContext& ctx) {
    const auto [stats, compiles] = expect_toy_trains_like_eager(ctx, {.ddp = ddp});
    EXPECT_EQ(compiles, (Counts{1, 0, 0, 0}));
    EXPECT_EQ(stats.graphs, graphs);
  });
}

TEST(CompileDdpOptions, FindUnusedParameters) { expect_trains_with({.find_unused_parameters = true}, 3); }
TEST(CompileDdpOptions, StaticGraph) { expect_trains_with({.static_graph = true}, 3); }
TEST(CompileDdpOptions, GradientAsBucketView) { expect_trains_with({.gradient_as_bucket_view = true}, 3); }
// Parameters in lower precision have half the bytes, and so fill fewer buckets.
TEST(CompileDdpOptions, MixedPrecision) {
  expect_trains_with({.mixed_precision = MixedPrecision{.param_dtype = at::kBFloat16}}, 2);
}

TEST_F(TestSingleProc, test_graph_split) {
  on_ranks([this](RankContext& ctx) {
    const auto stats = expect_split_toy_like_eager(ctx, {.hidden = 700}, cap_mb());
    expect_listed(stats, {1}, ctx.rank());
  });
}

// optimize_ddp is off, and the back end splits instead. Parameters that DDP ignores count in no bucket.
TEST_F(TestSingleProc, test_ignored_parameters) {
  on_ranks([this](RankContext& ctx) {
    test::Custom net;
    const auto counting = std::make_shared<CountingBackend>();
    const auto split = std::make_shared<SplitByDdp>(
        parallel::DdpBuckets{.bucket_bytes_cap = static_cast<std::int64_t>(cap_mb() * 1024 * 1024)}, counting);
    const std::vector<std::string> ignored = {"seq.2.weight", "seq.4.linear.bias"};
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb(), .parameters_to_ignore = ignored});
    auto compiled = compile(ddp, {.backend = split, .optimize_ddp = false});
    const at::Tensor x = at::rand({512, 512}) * (ctx.rank() + 1);
    EXPECT_THAT(compiled(x, x), BitEqual(net->forward(x, x)));
    std::vector<std::string> counted;
    for (const parallel::ForwardBucket& bucket : split->buckets()) {
      counted.insert(counted.end(), bucket.parameters.begin(), bucket.parameters.end());
    }
    for (const std::string& name : ignored) EXPECT_THAT(counted, Not(Contains(HasSubstr(name))));
    EXPECT_EQ(counting->graphs(), 2U);
    EXPECT_EQ(split->buckets().size(), 2U);
    EXPECT_EQ(counted.size(), 3U);
    expect_listed(compiled.stats(), {1}, ctx.rank());
  });
}

// A function that only reads the group's size: an empty graph, compiled once.
TEST_F(TestSingleProc, test_empty_graph_inductor) {
  on_ranks([this](RankContext& ctx) {
    auto compiled = compile([&] { return std::tuple(ctx.group().size()); }, {.backend = "aot_eager"});
    Counts compiles;
    for (int call = 0; call < 2; ++call) {
      EXPECT_EQ(std::get<0>(compiled()), ctx.size());
      compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    }
    expect_listed(compiled.stats(), compiles, ctx.rank());
    EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).nodes, 0U);
  });
}

TEST(CompileInsideDdp, IsSplitByItsBuckets) {
  on_worlds([](RankContext& ctx) {
    test::Toy net(test::ToyShape{.hidden = 300});
    auto compiled = compile(net, {.backend = "eager"});
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.3});
    const at::Tensor x = at::ones({20, 10});
    EXPECT_THAT(ddp.forward_with(compiled, x), BitEqual(net->forward(x)));
    EXPECT_EQ(compiled.stats().graphs, 3);
  });
}

// compile() splits a function that calls a FakeDDP. It refuses a function that calls a real DDP, because the DDP
// communicates. The remedy is to compile the DDP itself.
TEST(CompileAroundDdp, FakesAreSplitAndRealOnesRefused) {
  on_worlds([](RankContext& ctx) {
    test::Toy net(test::ToyShape{.hidden = 700});
    fakes::FakeDDP<test::Toy> fake(net, 1);
    const at::Tensor x = at::ones({20, 10});
    auto around_fake = compile([&](const at::Tensor& input) { return fake(input) * 2; }, {.backend = "eager"});
    EXPECT_THAT(around_fake(x), BitEqual(net->forward(x) * 2));
    EXPECT_EQ(around_fake.stats().graphs, 3);

    DistributedDataParallel ddp(net, ctx.group());
    auto around = compile([&](const at::Tensor& input) { return ddp(input); }, {.fullgraph = true});
    try {
      around(x);
      ADD_FAILURE() << "no error";
    } catch (const capture::NotCapturable& error) {
      EXPECT_THAT(error.what(), HasSubstr("rehearse::compile(ddp)"));
    }
  });
}

}  // namespace
}  // namespace rehearse::compiler
