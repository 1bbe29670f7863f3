// SPDX-License-Identifier: BSD-3-Clause
// Seeds that wrap the model in DDP, on fiber ranks with the real Reducer.
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

#include "models/custom.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

void on_ranks(const World::Body& body) {
  for (const int ranks : {1, 2, 8}) {
    SCOPED_TRACE(ranks);
    World world({.ranks = ranks});
    const Report report = world.run(body);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

std::vector<at::Tensor> taken_gradients(torch::nn::Module& module) {
  std::vector<at::Tensor> gradients;
  for (auto& parameter : module.parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

// Trains Toy compiled and Toy as it is under the real Reducer, side by side: outputs and gradients are equal, bit for
// bit, in the first step (one bucket), the second (buckets are rebuilt) and after.
void expect_training_like_eager(RankContext& ctx, DistributedDataParallelOptions options, bool optimize_ddp,
                                std::int64_t graphs) {
  at::manual_seed(1);
  const test::ToyShape shape{.hidden = 300};
  test::Toy net(shape), reference(shape);
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < net->parameters().size(); ++i) reference->parameters()[i].copy_(net->parameters()[i]);
  }
  options.bucket_cap_mb = 0.3;
  DistributedDataParallel ddp(net, ctx.group(), options);
  DistributedDataParallel eager(reference, ctx.group(), options);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true, .optimize_ddp = optimize_ddp});
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = at::full({20, 10}, 0.25 * (ctx.rank() + 1) + step);
    const at::Tensor found = compiled(x), expected = eager(x);
    EXPECT_TRUE(found.equal(expected));
    found.sum().backward();
    expected.sum().backward();
    const auto gradients = taken_gradients(*net), wanted = taken_gradients(*reference);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(gradients[i].equal(wanted[i])) << step << " " << i;
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, graphs);
}

TEST(TestSingleProc, test_aot_autograd_ddp) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {}, true, 3); });
}

// optimize_ddp off: one graph, whatever the buckets.
TEST(TestMultiProc, test_ddp_baseline_aot_eager_multiprocess) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {}, false, 1); });
}
TEST(TestSingleProc, test_ddp_baseline_aot_eager) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {}, false, 1); });
}

// Options that change the module's inputs or outputs, or how gradients lie in memory.
TEST(CompileDdpOptions, FindUnusedParameters) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {.find_unused_parameters = true}, true, 3); });
}
TEST(CompileDdpOptions, StaticGraph) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {.static_graph = true}, true, 3); });
}
TEST(CompileDdpOptions, GradientAsBucketView) {
  on_ranks([](RankContext& ctx) { expect_training_like_eager(ctx, {.gradient_as_bucket_view = true}, true, 3); });
}
TEST(CompileDdpOptions, MixedPrecision) {
  on_ranks([](RankContext& ctx) {
    // Lowered parameters have half the bytes, and so fill fewer buckets.
    expect_training_like_eager(ctx, {.mixed_precision = MixedPrecision{.param_dtype = at::kBFloat16}}, true, 2);
  });
}

TEST(TestSingleProc, test_graph_split_ddp) {
  on_ranks([](RankContext& ctx) {
    test::Toy net(test::ToyShape{.hidden = 700});
    const auto counting = std::make_shared<CountingBackend>();
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 1.5});
    auto compiled = compile(ddp, {.backend = counting});
    const at::Tensor x = at::ones({20, 10});
    EXPECT_TRUE(compiled(x).equal(net->forward(x)));
    EXPECT_EQ(counting->graphs(), 3U);
    EXPECT_EQ(compiled.explain().break_reasons().size(), 3U);
  });
}

// Splitting is off, and the back end splits: what DDP ignores is counted into no bucket.
TEST(TestSingleProc, test_ignored_parameters) {
  on_ranks([](RankContext& ctx) {
    test::Custom net;
    const auto counting = std::make_shared<CountingBackend>();
    const auto split = std::make_shared<SplitByDdp>(parallel::DdpBuckets{}, counting);
    const std::vector<std::string> ignored = {"seq.2.weight", "seq.4.linear.bias"};
    DistributedDataParallel ddp(net, ctx.group(), {.parameters_to_ignore = ignored});
    auto compiled = compile(ddp, {.backend = split, .optimize_ddp = false});
    const at::Tensor x = at::ones({512, 512});
    EXPECT_TRUE(compiled(x, x).equal(net->forward(x, x)));
    std::vector<std::string> counted;
    for (const parallel::ForwardBucket& bucket : split->buckets()) {
      counted.insert(counted.end(), bucket.parameters.begin(), bucket.parameters.end());
    }
    for (const std::string& name : ignored) EXPECT_THAT(counted, Not(Contains(HasSubstr(name))));
    EXPECT_EQ(counting->graphs(), 2U);
    EXPECT_EQ(split->buckets().size(), 2U);
    EXPECT_EQ(counted.size(), 3U);
  });
}

// A function of nothing but the group: an empty graph, compiled once.
TEST(TestSingleProc, test_empty_graph_inductor) {
  on_ranks([](RankContext& ctx) {
    auto compiled = compile([&] { return std::tuple(ctx.group().size()); }, {.backend = "aot_eager"});
    EXPECT_EQ(std::get<0>(compiled()), ctx.size());
    EXPECT_EQ(std::get<0>(compiled()), ctx.size());
    EXPECT_EQ(compiled.stats().compiles, 1);
    EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).nodes, 0U);
  });
}

// A compiled module inside of an eager DDP is split by that DDP's buckets.
TEST(CompileInsideDdp, IsSplitByItsBuckets) {
  on_ranks([](RankContext& ctx) {
    test::Toy net(test::ToyShape{.hidden = 300});
    auto compiled = compile(net, {.backend = "eager"});
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.3});
    const at::Tensor x = at::ones({20, 10});
    EXPECT_TRUE(ddp.forward_with(compiled, x).equal(net->forward(x)));
    EXPECT_EQ(compiled.stats().graphs, 3);
  });
}

// Code that calls a FakeDDP is split; that of a real one communicates, and is to be compiled itself.
TEST(CompileAroundDdp, FakesAreSplitAndRealOnesRefused) {
  on_ranks([](RankContext& ctx) {
    test::Toy net(test::ToyShape{.hidden = 700});
    fakes::FakeDDP<test::Toy> fake(net, 1);
    const at::Tensor x = at::ones({20, 10});
    auto around_fake = compile([&](const at::Tensor& input) { return fake(input) * 2; }, {.backend = "eager"});
    EXPECT_TRUE(around_fake(x).equal(net->forward(x) * 2));
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
