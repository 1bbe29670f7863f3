// SPDX-License-Identifier: BSD-3-Clause
// A compiled FullyShardedDataParallel trains with the same bits as in eager mode, and with the gradients of one process
// that has the whole batch (up to rounding).
#include <memory>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <rehearse/parallel/checkpoint.h>
#include <rehearse/parallel/device_mesh.h>

#include "bit_equal.h"
#include "core/compile/fsdp/compiled_training.h"

namespace {

using namespace rehearse_test;
using rehearse::CompileOptions;
using rehearse::FullyShardedDataParallel;
using rehearse::FullyShardedOptions;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;

Mlp mlp() { return Mlp(); }

// Trains on 1, 2 and 3 ranks, with two back ends, and compares with eager mode. Expects one compilation for all steps,
// and `graphs` graphs.
template <class Make>
void expect_like_eager(Make&& make, const FullyShardedOptions& sharded, std::int64_t graphs) {
  for (const int ranks : {1, 2, 3}) {
    for (const char* const backend : {"aot_eager", "eager"}) {
      SCOPED_TRACE(::testing::Message() << ranks << " ranks, " << backend);
      run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
        const auto told = expect_trains_like_eager(ctx, make, sharded, {.backend = backend, .fullgraph = true},
                                                   batches_of(ctx.rank()));
        EXPECT_EQ(told.stats.compiles, 1) << told.text();
        EXPECT_EQ(told.stats.hits, 3);
        EXPECT_EQ(told.stats.graphs, graphs) << told.text();
      });
    }
  }
}

TEST(CompiledFsdp, RootAlone_IsOneGraph) { expect_like_eager(mlp, {}, 1); }
TEST(CompiledFsdp, UnitForEachLinear_IsAGraphForEach) { expect_like_eager(mlp, {.units = kEachLinear}, 3); }
// "second" is a unit. The root unit has the other layers, which run before and after "second".
TEST(CompiledFsdp, RootAroundAUnit_IsCutTwice) { expect_like_eager(mlp, {.units = UnitPolicy::named({"second"})}, 3); }
class ReadsTwiceImpl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) {
    if (!x.equal(x)) return x;
    const at::Tensor h = x * 1;
    if (!h.equal(h)) return h;
    return at::dropout(down(at::gelu(up(h))), 0.2, true);
  }
  torch::nn::Linear up = register_module("up", torch::nn::Linear(8, 16));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(16, 8));
};
TORCH_MODULE(ReadsTwice);

class AroundReadsImpl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) { return last(unit(first(x))); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(1, 8));
  ReadsTwice unit = register_module("unit", ReadsTwice());
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 10));
};
TORCH_MODULE(AroundReads);

// While a capture runs, memory of tensors that are gone is used again. Which, depends on what the process did before.
TEST(CompiledFsdp, ManyInOneProcess_MakeTheSameCallsOnAllRanks) {
  for (int world = 0; world < 60 && !testing::Test::HasFailure(); ++world) {
    run_ranks({.ranks = 2}, [](RankContext& ctx) {
      at::manual_seed(1);
      AroundReads net;
      FullyShardedDataParallel fsdp(net, ctx.group(),
                                    {.units = UnitPolicy::of_type<ReadsTwiceImpl>(), .reshard_after_forward = true});
      auto compiled = rehearse::compile(fsdp);
      compiled(at::ones({3, 1}) * ctx.rank()).sum().backward();
    });
  }
}
TEST(CompiledFsdp, UnitsThatStayWhole_TrainAlike) {
  expect_like_eager(mlp, {.units = kEachLinear, .reshard_after_forward = false}, 3);
}
TEST(CompiledFsdp, WithoutPrefetch_TrainsAlike) {
  expect_like_eager(mlp, {.units = kEachLinear, .forward_prefetch = false}, 3);
}
TEST(CompiledFsdp, IgnoredParameters_CutNothing) {
  expect_like_eager(mlp, {.units = kEachLinear, .parameters_to_ignore = {"second.weight", "second.bias"}}, 2);
}
TEST(CompiledFsdp, MixedPrecision_TrainsAlike) {
  expect_like_eager(mlp,
                    {.units = kEachLinear,
                     .mixed_precision =
                         rehearse::FullyShardedMixedPrecision{
                             .param_dtype = at::kFloat, .reduce_dtype = at::kDouble, .output_dtype = at::kDouble}},
                    3);
}
TEST(CompiledFsdp, FrozenParameters_TrainAlike) {
  const auto frozen = [] {
    Mlp net;
    net->first->weight.set_requires_grad(false);
    net->second->weight.set_requires_grad(false);
    net->second->bias.set_requires_grad(false);
    return net;
  };
  expect_like_eager(frozen, {.units = kEachLinear}, 3);
}

struct BlockImpl : torch::nn::Module {
  BlockImpl() : layers(register_module("layers", torch::nn::Sequential())) {
    layers->push_back("in", double_linear(6, 6));
    layers->push_back("tanh", torch::nn::Tanh());
    layers->push_back("out", double_linear(6, 6));
  }
  at::Tensor forward(const at::Tensor& x) { return layers->forward(x); }
  torch::nn::Sequential layers;
};
TORCH_MODULE(Block);
TEST(CompiledFsdp, NestedSequentials_AreAGraphForEachBlock) {
  const auto nested = [] { return torch::nn::Sequential(Block(), torch::nn::ReLU(), Block()); };
  expect_like_eager(nested, {.units = UnitPolicy::of_type<BlockImpl>()}, 2);
  // A unit inside another unit gets a graph of its own.
  expect_like_eager(nested, {.units = UnitPolicy::named({"0", "0.layers.in", "2"})}, 3);
}

struct CheckpointedImpl : torch::nn::Module {
  CheckpointedImpl() : first(register_module("first", Block())), second(register_module("second", Block())) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto code = [](Block part) { return [part](const at::Tensor& h) mutable { return part(h); }; };
    return rehearse::checkpoint(code(second), rehearse::checkpoint(code(first), x).relu()).tanh();
  }
  Block first, second;
};
TORCH_MODULE(Checkpointed);
TEST(CompiledFsdp, Checkpoints_RunAgainInBackward) {
  const auto make = [] { return Checkpointed(); };
  expect_like_eager(make, {.units = UnitPolicy::named({"first", "second"})}, 2);
  // A checkpoint is one node, so all units that its code uses are in the graph that contains the node.
  expect_like_eager(make, {.units = kEachLinear}, 2);
}

// The root module and "first" share a parameter. Both are in the root unit.
struct TiedImpl : torch::nn::Module {
  TiedImpl()
      : first(register_module("first", double_linear(6, 6))), second(register_module("second", double_linear(6, 6))) {
    weight = register_parameter("weight", first->weight);
  }
  at::Tensor forward(const at::Tensor& x) { return at::linear(second(first(x)).tanh(), weight); }
  torch::nn::Linear first, second;
  at::Tensor weight;
};
TORCH_MODULE(Tied);
TEST(CompiledFsdp, TiedParameter_AddsUpItsGradients) {
  expect_like_eager([] { return Tied(); }, {.units = UnitPolicy::named({"second"})}, 3);
}

// The code makes a view of one unit's parameter, and uses the view after another unit's code.
struct ViewsImpl : torch::nn::Module {
  ViewsImpl()
      : first(register_module("first", double_linear(6, 6))), second(register_module("second", double_linear(6, 6))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor rows = first->weight.t().narrow(0, 0, 6);
    const at::Tensor y = second(at::matmul(x, first->weight)).tanh();
    return at::matmul(y, rows) + second->bias;
  }
  torch::nn::Linear first, second;
};
TORCH_MODULE(Views);
TEST(CompiledFsdp, ViewsOfParameters_BelongToTheirUnits) {
  expect_like_eager([] { return Views(); }, {.units = kEachLinear}, 4);
}

struct NormedImpl : torch::nn::Module {
  NormedImpl()
      : first(register_module("first", double_linear(6, 6))), norm(register_module("norm", torch::nn::BatchNorm1d(6))) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return norm(first(x)).relu(); }
  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
};
TORCH_MODULE(Normed);
TEST(CompiledFsdp, RunningStatistics_AreUpdatedOnce) {
  for (const int ranks : {1, 2}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      std::vector<std::vector<at::Tensor>> buffers;
      for (const bool compiles : {false, true}) {
        Normed net;
        fill(*net);
        FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::named({"first", "norm"})});
        auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
        for (const auto& x : batches_of(ctx.rank())) (compiles ? compiled(x) : fsdp(x)).sum().backward();
        buffers.push_back(copies(net->buffers()));
        EXPECT_EQ(compiled.stats().compiles, compiles ? 1 : 0);
      }
      EXPECT_THAT(buffers[0], BitEqual(buffers[1]));
    });
  }
}

TEST(CompiledFsdp, NoSync_KeepsGradientsOnTheirRank) {
  for (const int ranks : {1, 2, 3}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      std::vector<std::vector<at::Tensor>> gradients(2);
      for (const bool compiles : {false, true}) {
        Mlp net;
        fill(*net);
        FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
        auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
        const auto call = [&](const at::Tensor& x) { return compiles ? compiled(x) : fsdp(x); };
        for (int step = 0; step < 2; ++step) {
          fsdp.zero_grad();
          {
            const auto alone = fsdp.no_sync();
            loss_of(call(batch_of(ctx.rank(), 2 * step))).backward();
          }
          loss_of(call(batch_of(ctx.rank(), 2 * step + 1))).backward();
          for (const auto& each : gradient_copies(fsdp.parameters())) gradients[compiles ? 1 : 0].push_back(each);
        }
      }
      EXPECT_THAT(gradients[0], BitEqual(gradients[1]));
    });
  }
}

// One operator takes parameters of all units, so one graph has them all, and they are whole at the same time.
struct JoinedImpl : MlpImpl {
  JoinedImpl() : MlpImpl(6, 6, 6) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor all = at::cat({first->weight, second->weight, third->weight});
    return at::matmul(third(second(x)), all.t());
  }
};
TORCH_MODULE(Joined);
TEST(CompiledFsdp, OperatorOfAllUnits_FindsThemWhole) {
  expect_like_eager([] { return Joined(); }, {.units = kEachLinear}, 1);
}

// The first code that uses the unit "third" only writes to a buffer.
struct NotingImpl : MlpImpl {
  NotingImpl() : noted(register_buffer("noted", at::zeros({}, at::kDouble))) {}
  at::Tensor forward(const at::Tensor& x) {
    {
      const at::NoGradGuard no_grad;
      noted.add_(third->weight.sum());
    }
    return third(second(first(x))) + noted;
  }
  at::Tensor noted;
};
TORCH_MODULE(Noting);
TEST(CompiledFsdp, UnitThatOnlyWritesABuffer_IsAGraph) {
  expect_like_eager([] { return Noting(); }, {.units = kEachLinear}, 4);
}

// The function makes a leaf between two units. The leaf cuts the graph, and the units before it get no gradients.
struct LeafInsideImpl : MlpImpl {
  LeafInsideImpl() : MlpImpl(6, 6, 6) {}
  at::Tensor forward(const at::Tensor& x) { return third(second(first(x).detach().requires_grad_())); }
};
TORCH_MODULE(LeafInside);
TEST(CompiledFsdp, LeafMadeInside_CutsBesides) {
  expect_like_eager([] { return LeafInside(); }, {.units = kEachLinear}, 3);
}

// Ranks 0 and 2 are replicas: both have the first shard. Ranks 1 and 3 have the second shard.
TEST(CompiledFsdp, HybridSharding_TrainsAlike) {
  run_ranks({.ranks = 4}, [](RankContext& ctx) {
    const rehearse::DeviceMesh mesh(ctx, {2, 2}, {"replicas", "shards"});
    std::vector<ShardedTraining> trained;
    for (const bool compiles : {false, true}) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, mesh, {.units = kEachLinear});
      auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
      const auto call = [&](const at::Tensor& x) { return compiles ? compiled(x) : fsdp(x); };
      trained.push_back(train_sharded(fsdp, call, batches_of(ctx.rank())));
      EXPECT_EQ(compiled.stats().graphs, compiles ? 3 : 0);
    }
    expect_same_training(trained[1], trained[0]);
  });
}

// Autocast copies parameters anew in each call. The module uses each parameter once, because a graph adds up the
// gradients of several uses in another dtype than eager mode does.
struct AutocastImpl : MlpImpl {
  AutocastImpl() { to(at::kFloat); }
  at::Tensor forward(const at::Tensor& x) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
    const at::Tensor y = third(second(first(x).relu()).relu());
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return y.to(at::kFloat);
  }
};
TORCH_MODULE(Autocast);
TEST(CompiledFsdp, Autocast_TrainsAlike) {
  for (const int ranks : {1, 2}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      std::vector<at::Tensor> batches;
      for (const auto& each : batches_of(ctx.rank())) batches.push_back(each.to(at::kFloat));
      const auto told = expect_trains_like_eager(
          ctx, [] { return Autocast(); }, {.units = kEachLinear}, {.fullgraph = true}, batches);
      EXPECT_EQ(told.stats.compiles, 1);
    });
  }
}

// Each rank's gradients are its rows of the gradients that one process gets for the whole batch.
TEST(CompiledFsdp, Gradients_AreThoseOfOneProcess) {
  const auto loss = [](auto& model, const at::Tensor& x) { return loss_of(model(x)); };
  for (const int ranks : {1, 2, 3}) {
    const auto expected = mean_gradients(ranks, loss);
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
      auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
      for (int step = 0; step < 3; ++step) {
        fsdp.zero_grad();
        loss_of(compiled(batch_of(ctx.rank(), 0))).backward();
        EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(expected, ctx))) << step;
      }
    });
  }
}

}  // namespace
