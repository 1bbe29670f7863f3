// SPDX-License-Identifier: BSD-3-Clause
// The effects of a sharded model's options, and of meshes.
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;

TEST(FsdpOptions, NoSync_KeepsGradientsUntilTheNextBackward) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    {
      const auto guard = fsdp.no_sync();
      // Here the first layer gets a gradient. In the next backward, it gets none.
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
    EXPECT_THAT(net->second->weight, BitEqual(own));
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

// Each rank's gradient is in bfloat16, and the sum over ranks in float. FSDP and the reference below add in order of
// rank, so their bits must agree.
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
      EXPECT_THAT(gradient_copies(fsdp.parameters()), BitEqual(rows_of(sums, ctx)));
    }
  });
}

// In bfloat16, a sum of 256 equal gradients would stop growing on the way.
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
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_THAT(all[i], BitEqual(one[i] * 256)) << i;
    const auto guard = fsdp.no_sync();
    backward();
    fsdp.zero_grad();  // also clears the gradients kept so far
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
  });
}

// FSDP divides float16 gradients twice: before it adds them up, and afterwards. On 8 ranks it divides by 4 before, and
// by 2 afterwards.
TEST(FsdpOptions, HalfPrecision_DoesNotOverflow) {
  run_ranks({.ranks = 8}, [](RankContext& ctx) {
    torch::nn::Linear net(6, 8);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(),
                                  {.mixed_precision = rehearse::FullyShardedMixedPrecision{.param_dtype = at::kHalf}});
    const auto x = at::full({4, 6}, 4096.0, at::kFloat);  // each rank's gradients are 16384
    fsdp(x).sum().backward();
    EXPECT_THAT(fsdp.parameters()[0].grad(), BitEqual(at::full({1, 6}, 16384.0)));
    EXPECT_THAT(fsdp.parameters()[1].grad(), BitEqual(at::full({1}, 4.0)));
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
