// SPDX-License-Identifier: BSD-3-Clause
// Contract: a sharded model trains on GPUs like a replicated one, and checkpoints give the results of code without
// them.
#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>
#include <rehearse/parallel/move_to_meta.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "gpu_world.h"

namespace rehearse::real {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::Mlp;
using Tensors = std::vector<at::Tensor>;

class GpuFsdp : public GpuWorld {
 protected:
  static constexpr int kSteps = 4;

  // Rank 0's copies of the tensors that `train` returns.
  template <class Train>
  static Tensors parameters_after(int ranks, Train train) {
    Tensors parameters;
    const auto report = run(on_gpus(ranks), [&](RankContext& ctx) {
      Mlp model(6, 64, 3);
      rehearse_test::fill(*model);
      model->to(ctx.device());
      for (const at::Tensor& each : train(ctx, model)) {
        if (ctx.rank() == 0) parameters.push_back(each.detach().cpu());
      }
    });
    EXPECT_TRUE(has_verdict(report, Verdict::ok));
    return parameters;
  }

  template <class Parallel>
  static void take_steps(RankContext& ctx, Parallel& model, const Tensors& parameters) {
    torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(1e-2));
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      model.forward(rehearse_test::batch_of(ctx.rank(), step, 5).to(ctx.device())).pow(2).sum().backward();
      optimizer.step();
    }
  }

  static void expect_like_replicas(int ranks) {
    const Tensors replicated = parameters_after(ranks, [](RankContext& ctx, Mlp& model) {
      DistributedDataParallel ddp(model, ctx.group());
      take_steps(ctx, ddp, model->parameters());
      return model->parameters();
    });
    for (const UnitPolicy& units : {UnitPolicy(), UnitPolicy::of_type<torch::nn::LinearImpl>()}) {
      const Tensors sharded = parameters_after(ranks, [&](RankContext& ctx, Mlp& model) {
        FullyShardedDataParallel fsdp(model, ctx.group(), {.units = units});
        take_steps(ctx, fsdp, fsdp.parameters());
        Tensors whole;
        for (const auto& [name, tensor] : fsdp.full_state_dict()) whole.push_back(tensor);
        return whole;
      });
      ASSERT_EQ(sharded.size(), replicated.size());
      for (std::size_t i = 0; i < sharded.size(); ++i) {
        EXPECT_TRUE(sharded[i].allclose(replicated[i], 1e-5, 1e-6)) << i << sharded[i] - replicated[i];
      }
    }
  }
};

TEST_F(GpuFsdp, OneGpu_TrainsAsTheModelDoes) { expect_like_replicas(1); }
TEST_F(GpuFsdp, TwoGpus_TrainAsReplicasDo) {
  REHEARSE_REQUIRE_GPUS(2);
  expect_like_replicas(2);
}

TEST_F(GpuFsdp, FromMeta_ShardsAreMadeOnTheGpu) {
  const int ranks = std::min(gpus(), 2);
  const Tensors expected = parameters_after(ranks, [](RankContext& ctx, Mlp& model) {
    FullyShardedDataParallel fsdp(model, ctx.group(), {.units = UnitPolicy::of_type<torch::nn::LinearImpl>()});
    take_steps(ctx, fsdp, fsdp.parameters());
    return fsdp.parameters();
  });
  const Tensors made = parameters_after(ranks, [](RankContext& ctx, Mlp& model) {
    std::map<std::string, at::Tensor> values;
    for (const auto& each : model->named_parameters()) values.emplace(each.key(), each.value().detach().clone());
    move_to_meta(*model);
    const FromMeta from{.device = ctx.device(),
                        .fill = [&](const std::string& name, at::Tensor whole) { whole.copy_(values.at(name)); }};
    FullyShardedDataParallel fsdp(model, ctx.group(),
                                  {.units = UnitPolicy::of_type<torch::nn::LinearImpl>(), .from_meta = from});
    EXPECT_EQ(fsdp.parameters()[0].device(), ctx.device());
    take_steps(ctx, fsdp, fsdp.parameters());
    return fsdp.parameters();
  });
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_TRUE(made[i].allclose(expected[i], 1e-6, 1e-7)) << i;
}

// Dropout draws from the GPU's generator, which must be in the same state for the second run of the code.
TEST_F(GpuFsdp, Checkpoints_DrawTheSameTwice) {
  const auto report = run(on_gpus(1), [](RankContext& ctx) {
    const auto layers = [](bool checkpoints) {
      return [checkpoints](const at::Tensor& x, const at::Tensor& weight) {
        const auto layer = [weight](const at::Tensor& h) { return at::dropout(h.matmul(weight).tanh(), 0.5, true); };
        const at::Tensor h = checkpoints ? checkpoint(layer, x) : layer(x);
        return checkpoints ? checkpoint(layer, h) : layer(h);
      };
    };
    const at::Tensor x = at::rand({8, 16}, at::TensorOptions(ctx.device()));
    const auto gradient_of = [&](auto&& forward) {
      const at::Tensor weight = at::ones({16, 16}, at::TensorOptions(ctx.device())).mul_(0.1).requires_grad_();
      at::manual_seed(7);
      forward(x, weight).sum().backward();
      return weight.grad();
    };
    const at::Tensor expected = gradient_of(layers(false));
    EXPECT_THAT(gradient_of(layers(true)), BitEqual(expected));
    EXPECT_THAT(gradient_of(compile(layers(true), {.backend = "eager", .fullgraph = true})), BitEqual(expected));
    const at::Tensor compiled = gradient_of(compile(layers(true), {.backend = "aot_eager", .fullgraph = true}));
    EXPECT_THAT(compiled, BitEqual(expected)) << (compiled - expected).abs().max();
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
}

}  // namespace
}  // namespace rehearse::real
