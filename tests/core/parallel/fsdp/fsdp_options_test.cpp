// SPDX-License-Identifier: BSD-3-Clause
// What a model may do between its parameters' coming and going, and what the options make of it.
#include <string>
#include <vector>

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/parallel/checkpoint.h>

#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::FullyShardedOptions;
using rehearse::RankContext;
using rehearse::UnitPolicy;

// This rank's rows of each, as torch.chunk() cuts.
std::vector<at::Tensor> rows_of(const std::vector<at::Tensor>& tensors, const RankContext& ctx) {
  std::vector<at::Tensor> rows;
  for (const auto& each : tensors) {
    const std::int64_t chunk = (each.size(0) + ctx.size() - 1) / ctx.size();
    const std::int64_t from = std::min(ctx.rank() * chunk, each.size(0));
    rows.push_back(each.narrow(0, from, std::min(from + chunk, each.size(0)) - from));
  }
  return rows;
}

// The gradients of `loss_of(net, rank's batch)` as one process has them, the mean over ranks.
template <class Loss>
std::vector<at::Tensor> mean_gradients(int ranks, Loss&& loss_of) {
  Mlp net;
  fill(*net);
  for (int rank = 0; rank < ranks; ++rank) (loss_of(net, batch_of(rank, 0)) / ranks).backward();
  return gradient_copies(net->parameters());
}

// The same of all ranks, sharded; `loss_of` gets something to call with a batch.
template <class Loss, class Reference>
void expect_gradients(const FullyShardedOptions& options, Loss&& loss_of, Reference&& reference) {
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const auto expected = mean_gradients(ranks, reference);
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), options);
      for (int step = 0; step < 2; ++step) {  // the second prefetches in forward
        fsdp.zero_grad();
        loss_of(fsdp, batch_of(ctx.rank(), 0)).backward();
        EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(expected, ctx))) << "step " << step;
      }
    });
  }
}

at::Tensor loss_of(const at::Tensor& output) { return output.square().sum(); }

TEST(FsdpCode, TwoForwardsOneBackward_AddUp) {
  const auto loss = [](auto& model, const at::Tensor& x) { return loss_of(model(x)) + loss_of(model(x * 2)); };
  expect_gradients({.units = kEachLinear}, loss, loss);
  expect_gradients({.units = kEachLinear, .reshard_after_forward = false}, loss, loss);
}

TEST(FsdpCode, TwoBackwardsOfOneForward_AddUp) {
  const auto twice = [](auto& model, const at::Tensor& x) {
    auto loss = loss_of(model(x));
    loss.backward({}, /*retain_graph=*/true);
    return loss;
  };
  const auto doubled = [](auto& model, const at::Tensor& x) { return loss_of(model(x)) * 2; };
  expect_gradients({.units = kEachLinear}, twice, doubled);
}

TEST(FsdpCode, UnitInsideOfUnit_StaysWholeAroundIt) {
  struct OuterImpl : torch::nn::Module {
    OuterImpl()
        : inner(register_module("inner", Mlp())), scale(register_parameter("scale", at::ones({3}, at::kDouble))) {}
    at::Tensor forward(const at::Tensor& x) { return inner(x * scale.sum()) * scale; }
    Mlp inner;
    at::Tensor scale;
  };
  struct ModelImpl : torch::nn::Module {
    ModelImpl() : outer(register_module("outer", std::make_shared<OuterImpl>())) {}
    at::Tensor forward(const at::Tensor& x) { return outer->forward(x); }
    std::shared_ptr<OuterImpl> outer;
  };
  for (const int ranks : {2, 3}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      const auto whole = std::make_shared<ModelImpl>(), net = std::make_shared<ModelImpl>();
      fill(*whole);
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::named({"outer", "outer.inner"})});
      loss_of(whole->forward(batch_of(0, 0))).backward();
      loss_of(fsdp(batch_of(0, 0))).backward();
      EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
    });
  }
}

// A view that the module made when it was built shares the memory that comes and goes.
TEST(FsdpCode, ViewsAndListsOfParameters_FindThem) {
  struct ViewingImpl : torch::nn::Module {
    ViewingImpl()
        : left(register_parameter("left", at::zeros({4, 3}, at::kDouble))),
          right(register_parameter("right", at::zeros({5, 3}, at::kDouble))),
          turned(left.t()) {}
    at::Tensor forward(const at::Tensor& x) {
      return at::matmul(x, turned).sum() + at::cat({left, right}).square().sum() + at::stack({left, left * 2}).sum();
    }
    at::Tensor left, right, turned;
  };
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    const auto whole = std::make_shared<ViewingImpl>(), net = std::make_shared<ViewingImpl>();
    fill(*whole);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group());
    const auto x = values({2, 3}, 9);
    const auto expected = whole->forward(x), result = fsdp(x);
    EXPECT_TRUE(at::equal(result, expected));
    expected.backward();
    result.backward();
    EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
  });
}

TEST(FsdpCode, OperatorOnParametersOfSeveralUnits_HasThemAll) {
  const auto loss = [](Mlp& net, const at::Tensor& x) {
    std::vector<at::Tensor> flat;
    for (const auto& each : net->parameters()) flat.push_back(each.flatten());
    std::vector<at::Tensor> norms = at::_foreach_norm(net->parameters(), 2);
    return net(x).square().sum() + at::cat(flat).square().sum() + at::stack(norms).sum() +
           at::addmm(net->second->bias, x, net->first->weight.t()).sum();
  };
  expect_gradients(
      {.units = kEachLinear},
      [&](auto& fsdp, const at::Tensor& x) {
        return fsdp.forward_with([&](const at::Tensor& input) { return loss(fsdp.net(), input); }, x);
      },
      loss);
}

TEST(FsdpCode, NoGradAndInferenceMode_ComputeTheSame) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp whole, net;
    fill(*whole);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto x = batch_of(ctx.rank(), 0);
    const auto expected = whole(x).detach();
    for (int i = 0; i < 2; ++i) {
      {
        const at::NoGradGuard no_grad;
        EXPECT_TRUE(at::equal(fsdp(x), expected));
      }
      {
        const c10::InferenceMode inference;
        EXPECT_TRUE(at::equal(fsdp(x), expected));
      }
      for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
      const auto trained = fsdp(x);
      EXPECT_TRUE(at::equal(trained, expected));
      loss_of(trained).backward();
    }
  });
}

// An optimizer's step behind a forward without a backward: the root must not keep its old values.
TEST(FsdpCode, StepBehindAForwardAlone_IsSeenByTheNext) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.reshard_after_forward = false});
    const auto x = batch_of(0, 0);
    const auto before = fsdp(x).detach();
    {
      const at::NoGradGuard no_grad;
      for (auto& shard : fsdp.parameters()) shard.mul_(2);
    }
    Mlp doubled;
    fill(*doubled);
    {
      const at::NoGradGuard no_grad;
      for (auto& each : doubled->parameters()) each.mul_(2);
    }
    const auto after = fsdp(x).detach();
    EXPECT_TRUE(at::equal(after, doubled(x)));
    EXPECT_FALSE(at::equal(after, before));
  });
}

TEST(FsdpCode, CheckpointInsideUnits_SameGradients) {
  const auto plain = [](auto& model, const at::Tensor& x) { return loss_of(model(x)); };
  const auto checkpointed = [](auto& model, const at::Tensor& x) {
    return loss_of(model.forward_with(
        [&](const at::Tensor& input) {
          auto& net = model.net();
          const auto first = [net](const at::Tensor& h) mutable { return net->second(net->first(h).relu()).relu(); };
          const auto second = [net](const at::Tensor& h) mutable { return net->third(h); };
          return rehearse::checkpoint(second, rehearse::checkpoint(first, input));
        },
        x));
  };
  expect_gradients({.units = kEachLinear}, checkpointed, plain);
  expect_gradients({}, checkpointed, plain);
}

TEST(FsdpCode, ParametersWithoutGradient_AreLeftAlone) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto code = [](Mlp& of, const at::Tensor& x) {
      return at::linear(of->first(x), of->second->weight).square().sum();  // no bias of the second, and no third
    };
    code(whole, batch_of(0, 0)).backward();
    fsdp.forward_with([&](const at::Tensor& x) { return code(net, x); }, batch_of(0, 0)).backward();
    EXPECT_TRUE(close(gradient_copies(fsdp.parameters()),
                      {rows_of({whole->first->weight.grad(), whole->first->bias.grad()}, ctx)[0],
                       rows_of({whole->first->bias.grad()}, ctx)[0], rows_of({whole->second->weight.grad()}, ctx)[0],
                       at::Tensor(), at::Tensor(), at::Tensor()}));
  });
}

TEST(FsdpCode, GradientOfAnInput_NeedsNoReduction) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto gradient_of = [&](auto& model) {
      const auto x = batch_of(ctx.rank(), 0).requires_grad_();
      return torch::autograd::grad({loss_of(model(x))}, {x})[0];
    };
    EXPECT_TRUE(at::equal(gradient_of(fsdp), gradient_of(whole)));
    for (const auto& shard : fsdp.parameters()) EXPECT_FALSE(shard.grad().defined());
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
  });
}

TEST(FsdpOptions, NoSync_KeepsGradientsUntilTheNextBackward) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    {
      const auto guard = fsdp.no_sync();
      // The first layer has a gradient here, and none later.
      loss_of(fsdp(batch_of(ctx.rank(), 0))).backward();
    }
    for (const auto& shard : fsdp.parameters()) EXPECT_FALSE(shard.grad().defined());
    const auto late = [](Mlp& of, const at::Tensor& x) { return loss_of(of->third(of->second(x))); };
    const auto x = at::ones({2, 16}, at::kDouble);
    fsdp.forward_with([&](const at::Tensor& input) { return late(net, input); }, x).backward();
    for (int rank = 0; rank < ctx.size(); ++rank) (loss_of(whole(batch_of(rank, 0))) / ctx.size()).backward();
    late(whole, x).backward();
    EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
  });
}

TEST(FsdpOptions, Ignored_StayAsTheyAre) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    fill(*net, 3 * ctx.rank());
    const auto own = net->second->weight.detach().clone();
    FullyShardedDataParallel fsdp(net, ctx.group(), {.parameters_to_ignore = {"second.weight"}});
    EXPECT_TRUE(at::equal(net->second->weight, own));
    EXPECT_TRUE(fsdp.parameters()[2].is_same(net->second->weight));
    loss_of(fsdp(batch_of(ctx.rank(), 0))).backward();
    EXPECT_EQ(net->second->weight.grad().sizes(), own.sizes());
    fsdp.zero_grad();
    EXPECT_FALSE(net->second->weight.grad().defined());
  });
}

TEST(FsdpOptions, ClipGradNorm_IsTheWholeModels) {
  for (const double type : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
    run_ranks({.ranks = 3}, [type](RankContext& ctx) {
      Mlp net, whole;
      fill(*net);
      fill(*whole);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
      const auto x = batch_of(0, 0);
      loss_of(fsdp(x)).backward();
      loss_of(whole(x)).backward();
      std::vector<at::Tensor> flat;
      for (const auto& each : whole->parameters()) flat.push_back(each.grad().flatten());
      const auto expected = at::linalg_vector_norm(at::cat(flat), type);
      const auto norm = fsdp.clip_grad_norm_(0.5, type);
      EXPECT_TRUE(at::allclose(norm, expected, 1e-12, 0));
      for (auto& each : flat) each.mul_(0.5 / (expected + 1e-6));
      EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
    });
  }
}

// Of each rank in bfloat16, added up in float: to the bit, because both add in order of ranks.
TEST(FsdpOptions, MixedPrecision_ComputesLowAndReducesHigh) {
  constexpr int kRanks = 3;
  std::vector<at::Tensor> sums;
  for (int rank = 0; rank < kRanks; ++rank) {
    Mlp low(6, 16, 3, at::kFloat);
    fill(*low);
    low->to(at::kBFloat16);
    low(batch_of(rank, 0).to(at::kBFloat16)).to(at::kFloat).square().sum().backward();
    const auto gradients = gradient_copies(low->parameters());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto high = gradients[i].to(at::kFloat);
      if (rank == 0) {
        sums.push_back(high);
      } else {
        sums[i] += high;
      }
    }
  }
  for (auto& each : sums) each.div_(kRanks);
  run_ranks({.ranks = kRanks}, [&](RankContext& ctx) {
    Mlp net(6, 16, 3, at::kFloat);
    fill(*net);
    FullyShardedDataParallel fsdp(
        net, ctx.group(),
        {.units = kEachLinear,
         .mixed_precision = rehearse::FullyShardedMixedPrecision{
             .param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat}});
    EXPECT_EQ(net->first->weight.scalar_type(), at::kBFloat16);
    for (int step = 0; step < 2; ++step) {
      fsdp.zero_grad();
      const auto output = fsdp(batch_of(ctx.rank(), 0).to(at::kFloat));
      EXPECT_EQ(output.scalar_type(), at::kFloat);
      output.square().sum().backward();
      for (const auto& shard : fsdp.parameters()) EXPECT_EQ(shard.scalar_type(), at::kFloat);
      EXPECT_TRUE(same_bits(gradient_copies(fsdp.parameters()), rows_of(sums, ctx)));
    }
  });
}

// 256 equal gradients are 256 times one of them; in bfloat16 the sum would stand still on its way.
TEST(FsdpOptions, MixedPrecisionInNoSync_AddsUpInTheDtypeOfReductions) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net(6, 16, 3, at::kFloat);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(),
                                  {.units = kEachLinear,
                                   .mixed_precision = rehearse::FullyShardedMixedPrecision{
                                       .param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
    const auto backward = [&] { fsdp(batch_of(0, 0).to(at::kFloat)).to(at::kFloat).square().sum().backward(); };
    backward();
    const auto one = gradient_copies(fsdp.parameters());
    fsdp.zero_grad();
    {
      const auto guard = fsdp.no_sync();
      for (int i = 1; i < 256; ++i) backward();
    }
    backward();
    const auto all = gradient_copies(fsdp.parameters());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].equal(one[i] * 256)) << i;
    const auto guard = fsdp.no_sync();
    backward();
    fsdp.zero_grad();  // what is kept goes, too
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
  });
}

TEST(FsdpMesh, HybridSharding_IsTheMeanOverAllRanks) {
  for (const auto& [replicas, shards] : {std::pair{2, 2}, {2, 3}, {4, 2}, {4, 1}, {1, 3}}) {
    const int ranks = replicas * shards;
    const auto expected = mean_gradients(ranks, [](Mlp& net, const at::Tensor& x) { return loss_of(net(x)); });
    run_ranks({.ranks = ranks}, [&, replicas = replicas, shards = shards](RankContext& ctx) {
      const rehearse::DeviceMesh mesh(ctx, {replicas, shards}, {"replicas", "shards"});
      Mlp net;
      fill(*net, /*salt=*/7 * ctx.rank());
      FullyShardedDataParallel fsdp(net, mesh, {.units = kEachLinear});
      loss_of(fsdp(batch_of(ctx.rank(), 0))).backward();
      EXPECT_EQ(fsdp.parameters()[0].size(0),
                (16 + shards - 1) / shards - (shards == 3 && ctx.rank() % 3 == 2 ? 2 : 0));
      const auto gradients = gradient_copies(fsdp.parameters());
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const std::int64_t chunk = (expected[i].size(0) + shards - 1) / shards;
        const auto from = std::min(ctx.rank() % shards * chunk, expected[i].size(0));
        EXPECT_TRUE(at::allclose(gradients[i], expected[i].narrow(0, from, gradients[i].size(0)), 1e-12, 1e-12));
      }
    });
  }
}

}  // namespace
