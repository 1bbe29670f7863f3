// SPDX-License-Identifier: BSD-3-Clause
// compile() cuts a sharded model's graph at its units. A unit is gathered before its graph runs, and its gradients are
// reduced after the graph's backward.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/graph_module.h>

#include "bit_equal.h"
#include "core/compile/fsdp/compiled_training.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

TEST(CompiledFsdpUnits, Graphs_SayWhichUnitBeginsBehindThem) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::named({"second"})});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    compiled(batch_of(ctx.rank(), 0)).sum().backward();
    const auto told = compiled.explain();
    EXPECT_THAT(told.break_reasons(), ElementsAre("FSDP: unit \"second\" begins", "FSDP: the root unit begins"));
    const auto& graphs = told.entries.at(0).graphs;
    ASSERT_EQ(graphs.size(), 3U);
    EXPECT_EQ(graphs[0].parameters, (Texts{"first.weight", "first.bias"}));
    EXPECT_EQ(graphs[1].parameters, (Texts{"second.weight", "second.bias"}));
    EXPECT_EQ(graphs[2].parameters, (Texts{"third.weight", "third.bias"}));
    EXPECT_EQ(graphs[0].bucket_bytes, 8 * (16 * 6 + 16));
    EXPECT_EQ(graphs[1].bucket_bytes, 8 * (16 * 16 + 16));
    EXPECT_EQ(graphs[2].bucket_bytes, 8 * (3 * 16 + 3));
  });
}

TEST(CompiledFsdpUnits, Parameters_HaveTheirWholeSizes) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group());
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    compiled(batch_of(ctx.rank(), 0));
    const auto told = compiled.explain();
    const auto& graph = *told.entries.at(0).graphs.at(0).module;
    EXPECT_TRUE(graph.attributes().empty());  // parameters are inputs
    std::size_t parameters = 0;
    for (const auto* input : graph.graph().placeholders()) {
      const auto* const whole = net->named_parameters().find(input->target());
      if (whole == nullptr) continue;
      ++parameters;
      const auto& meta = *input->meta().tensor();
      ASSERT_EQ(meta.sizes.size(), static_cast<std::size_t>(whole->dim()));
      for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
        EXPECT_EQ(meta.sizes[i].number(), whole->size(static_cast<std::int64_t>(i))) << input->target();
      }
      EXPECT_EQ(meta.storage_nbytes.value().number(), static_cast<std::int64_t>(whole->nbytes())) << input->target();
    }
    EXPECT_EQ(parameters, 6U);
  });
}

// The group's calls on rank 0 in four steps, in order, each with its unit.
Texts calls_of_training(bool compiles, const rehearse::FullyShardedOptions& options) {
  rehearse::World world({.ranks = 2, .keep_all_events = true});
  const auto report = world.run([&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), options);
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    train_sharded(fsdp, [&](const at::Tensor& x) { return compiles ? compiled(x) : fsdp(x); }, batches_of(ctx.rank()));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  Texts calls;
  for (const auto& event : world.events().of_rank(0)) {
    const auto& signature = world.events().signature(event);
    calls.push_back(signature.name + " of " + signature.label);
  }
  return calls;
}

TEST(CompiledFsdpUnits, Calls_AreThoseOfEagerMode) {
  for (const bool prefetches : {true, false}) {
    for (const auto& units : {kEachLinear, UnitPolicy::named({"second"}), UnitPolicy()}) {
      const rehearse::FullyShardedOptions options{.units = units, .forward_prefetch = prefetches};
      const Texts expected = calls_of_training(false, options);
      EXPECT_GE(expected.size(), 4U * 2U);
      EXPECT_EQ(calls_of_training(true, options), expected);
    }
  }
}

TEST(CompiledFsdpUnits, Backward_FreesAUnitBeforeTheOneAfterNextComes) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<std::vector<bool>> whole(2);
    for (const bool compiles : {false, true}) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
      auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
      const at::Tensor x = batch_of(ctx.rank(), 0).requires_grad_();
      (compiles ? compiled(x) : fsdp(x)).sum().backward();
      for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole) << unit.name;
      x.mutable_grad().reset();
      auto y = compiles ? compiled(x) : fsdp(x);
      x.register_hook([&](const at::Tensor&) {
        for (const auto& unit : fsdp.units()) whole[compiles ? 1 : 0].push_back(unit.is_whole);
      });
      y.sum().backward();
    }
    EXPECT_EQ(whole[1], whole[0]);
    EXPECT_EQ(whole[1].size(), 3U);
  });
}

TEST(CompiledFsdpUnits, SizesThatVary_CompileTwice) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<at::Tensor> batches;
    for (const int rows : {4, 5, 6, 7}) batches.push_back(batch_of(ctx.rank(), 0, rows));
    const auto told =
        expect_trains_like_eager(ctx, [] { return Mlp(); }, {.units = kEachLinear}, {.fullgraph = true}, batches);
    EXPECT_EQ(told.stats.compiles, 2);
    EXPECT_EQ(told.stats.graphs, 6);
  });
}

// The ranks exchange their batch sizes during a forward, in which the units also make all-gathers.
TEST(CompiledFsdpUnits, RanksWithGuardCollectives_CompileTogether) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<at::Tensor> batches;
    for (const int rows : ctx.rank() == 0 ? std::vector{5, 8, 6} : std::vector{6, 6, 3})
      batches.push_back(batch_of(ctx.rank(), 0, rows));
    const auto told = expect_trains_like_eager(
        ctx, [] { return Mlp(); }, {.units = kEachLinear},
        {.fullgraph = true, .group = ctx.group(), .guard_collectives = true}, batches);
    EXPECT_EQ(told.stats.compiles, 1);
  });
}

struct ReadingImpl : MlpImpl {
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = second(first(x).relu());
    return (y.square().sum() > 0).item<bool>() ? third(y) : third(-y);
  }
};
TORCH_MODULE(Reading);
TEST(CompiledFsdpUnits, Reads_CutBesides) {
  for (const int ranks : {1, 2}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      const auto told =
          expect_trains_like_eager(ctx, [] { return Reading(); }, {.units = kEachLinear}, {}, batches_of(0, 3));
      EXPECT_EQ(told.refusal, "");
      EXPECT_EQ(told.stats.eager_calls, 0);
      EXPECT_EQ(told.stats.compiles, 1);
      EXPECT_EQ(told.stats.graphs, 3) << told.text();  // two up to the read, one after it
    });
  }
}

TEST(CompiledFsdpUnits, CompiledModuleInForward_IsCutToo) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, reference;
    fill(*net);
    fill(*reference);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    FullyShardedDataParallel eager(reference, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(net, {.fullgraph = true});
    const auto found =
        train_sharded(fsdp, [&](const at::Tensor& x) { return fsdp.forward_with(compiled, x); }, batches_of(0));
    expect_same_training(found, train_sharded(eager, [&](const at::Tensor& x) { return eager(x); }, batches_of(0)));
    EXPECT_EQ(compiled.stats().graphs, 3);
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

TEST(CompiledFsdpUnits, GraphsFromTheCache_TrainAlike) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "graphs of sharded models";
  std::filesystem::remove_all(folder);
  run_ranks({.ranks = 2}, [&](RankContext& ctx) {
    for (const bool again : {false, true}) {
      ctx.group().barrier()->wait();
      const auto told = expect_trains_like_eager(
          ctx, [] { return Mlp(); }, {.units = kEachLinear},
          {.fullgraph = true, .cache_dir = (folder / std::to_string(ctx.rank())).string()}, batches_of(ctx.rank()));
      EXPECT_EQ(told.stats.cache_hits, again ? 3 : 0);
      EXPECT_EQ(told.stats.cache_misses, again ? 0 : 3);
    }
  });
}

TEST(CompiledFsdpUnits, WithoutGradients_NothingStaysWhole) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, reference;
    fill(*net);
    fill(*reference);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    const at::Tensor x = batch_of(ctx.rank(), 0);
    for (int step = 0; step < 3; ++step) {
      {
        const at::NoGradGuard no_grad;
        EXPECT_THAT(compiled(x), BitEqual(reference(x)));
        for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole) << unit.name;
      }
      fsdp.zero_grad();
      loss_of(compiled(x)).backward();
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
}

}  // namespace
