// SPDX-License-Identifier: BSD-3-Clause
// DDP's reductions: ignored parameters, static graphs, communication hooks, and the scope of no_sync()'s guard.
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/power_sgd.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::parallel::PowerSgd;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using Options = rehearse::DistributedDataParallelOptions;

constexpr double kReductionRate = 1.0 / 256;

TEST(DdpIgnored, NeitherBroadcastNorReducedNorVerified) {
  struct Net : torch::nn::Module {
    explicit Net(int rank) {
      own = register_parameter("own", at::full({1 + rank}, rank + 1.0, at::kDouble));
      counter = register_buffer("counter", at::full({1}, rank + 1.0, at::kDouble));
      shared = register_parameter("shared", at::full({2}, rank + 1.0, at::kDouble));
    }
    at::Tensor forward(const at::Tensor& x) { return own.sum() * x + shared.sum() * x; }
    at::Tensor own, counter, shared;
  };
  for_ranks_and_seeds([](RankContext& ctx) {
    auto net = std::make_shared<Net>(ctx.rank());
    DistributedDataParallel ddp(net, ctx.group(), {.parameters_to_ignore = {"own", "counter"}});
    EXPECT_EQ(net->own[0].item<double>(), ctx.rank() + 1.0);
    EXPECT_EQ(net->counter[0].item<double>(), ctx.rank() + 1.0);
    EXPECT_EQ(net->shared[0].item<double>(), 1.0);
    for (int step = 0; step < 2; ++step) {
      ddp.zero_grad();
      ddp(at::full({}, ctx.rank() + 1.0, at::kDouble)).backward();
      EXPECT_EQ(net->own.grad()[0].item<double>(), ctx.rank() + 1.0);
      EXPECT_DOUBLE_EQ(net->shared.grad()[0].item<double>(), (ctx.size() + 1.0) / 2);
      EXPECT_EQ(net->counter[0].item<double>(), ctx.rank() + 1.0);
    }
    EXPECT_THAT(error_of<c10::ValueError>(
                    [&] { DistributedDataParallel other(net, ctx.group(), {.parameters_to_ignore = {"onw"}}); }),
                HasSubstr("parameters_to_ignore has \"onw\", but the module has no parameter or buffer"));
    EXPECT_THAT(error_of<c10::Error>([&] {
                  DistributedDataParallel other(net, ctx.group(), {.parameters_to_ignore = {"own", "shared"}});
                }),
                HasSubstr("DistributedDataParallel is not needed when a module doesn't have any parameter"));
  });
}

struct LoopImpl : torch::nn::Module {
  LoopImpl() {
    to(at::kDouble);
    fill(*this);
  }
  at::Tensor forward(at::Tensor x, int depth) {
    for (int i = 0; i < depth; ++i) x = layer(x).relu();
    return x;
  }
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(6, 6));
  torch::nn::Linear never = register_module("never", torch::nn::Linear(6, 6));
};
TORCH_MODULE(Loop);

TEST(DdpStaticGraph, LayerUsedThriceAndOneNever_GradientsOfTheWholeBatch) {
  for (const bool views : {false, true}) {
    for_ranks_and_seeds([&](RankContext& ctx) {
      Loop net, alone;
      DistributedDataParallel ddp(net, ctx.group(),
                                  {.bucket_cap_mb = 0.0001, .gradient_as_bucket_view = views, .static_graph = true});
      for (int step = 0; step < 4; ++step) {
        ddp.zero_grad(!views);
        alone->zero_grad();
        ddp(batch_of(ctx.rank(), step), 3).sum().backward();
        (alone(whole_batch(ctx.size(), step), 3).sum() / ctx.size()).backward();
        EXPECT_TRUE(close(gradient_copies(net->layer->parameters()), gradient_copies(alone->layer->parameters())));
        descend(ddp.parameters(), kReductionRate);
        descend(alone->parameters(), kReductionRate);
      }
    });
  }
}

// Loops that accumulate gradients hold a guard for all steps but the last.
TEST(DdpNoSync, HeldByAnOptional_EndsWithIt) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    auto net = double_linear(6, 3);
    fill(*net);
    DistributedDataParallel ddp(net, ctx.group());
    for (int step = 0; step < 3; ++step) {
      std::optional<rehearse::parallel::NoSyncGuard<rehearse::parallel::ReducerSession>> guard;
      if (step < 2) guard.emplace(ddp.no_sync());
      ddp(batch_of(ctx.rank(), step)).sum().backward();
      const auto gradient = net->weight.grad();
      auto mean = gradient.clone();
      ctx.group().allreduce(mean, c10d::ReduceOp::AVG)->wait();
      EXPECT_EQ(at::equal(mean, gradient), step == 2) << step;
    }
  });
}

TEST(DdpStaticGraph, FirstIterationInsideNoSync_SaysWhatToDo) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    DistributedDataParallel ddp(Loop(), ctx.group(), {.static_graph = true});
    const auto guard = ddp.no_sync();
    EXPECT_THAT(error_of<c10::Error>([&] { ddp(batch_of(0, 0), 1); }), HasSubstr("make it outside of no_sync()"));
  });
}

// The hook returns twice the mean over ranks, so the gradients must be twice those of one process.
TEST(DdpHooks, OwnHook_ItsFutureIsTheGradient) {
  for_ranks_and_seeds([](RankContext& ctx) {
    Mlp net, alone;
    fill(*net);
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.001});
    int calls = 0;
    ddp.register_comm_hook(
        rehearse::parallel::comm_hook([&](c10d::GradBucket& bucket) {
          ++calls;
          std::vector<at::Tensor> sum = {bucket.getBuffer()};
          return ctx.group()->allreduce(sum)->getFuture()->then(
              [sum, size = ctx.size()](c10::ivalue::Future&) { return c10::IValue(sum[0] * (2.0 / size)); },
              c10::TensorType::get());
        }),
        "doubling");
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      alone->zero_grad();
      ddp(batch_of(ctx.rank(), step)).sum().backward();
      (alone(whole_batch(ctx.size(), step)).sum() * (2.0 / ctx.size())).backward();
      EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters())));
    }
    EXPECT_EQ(calls, static_cast<int>(1 + 2 * ddp.buckets().size()));
    EXPECT_EQ(ddp.logging_data().strs_map.at("comm_hook"), "doubling");
    EXPECT_THAT(error_of<c10::Error>([&] { ddp.register_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS); }),
                HasSubstr("register_builtin_comm_hook or register_comm_hook can only be called once."));
  });
}

// If the rank of PowerSGD's approximation is at least the rank of each gradient matrix, PowerSGD loses nothing.
TEST(DdpHooks, PowerSgdOfFullRank_IsTheMean) {
  for_ranks_and_seeds([](RankContext& ctx) {
    Mlp net, alone;
    fill(*net);
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.001});
    const auto power_sgd = std::make_shared<PowerSgd>(
        ctx.group(), rehearse::parallel::PowerSgdOptions{
                         .matrix_approximation_rank = 64, .start_power_sgd_iter = 2, .min_compression_rate = 0});
    ddp.register_comm_hook(rehearse::parallel::power_sgd_hook(power_sgd), "power_sgd");
    for (int step = 0; step < 5; ++step) {
      ddp.zero_grad();
      alone->zero_grad();
      ddp(batch_of(ctx.rank(), step)).square().sum().backward();
      (alone(whole_batch(ctx.size(), step)).square().sum() / ctx.size()).backward();
      EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters()), 1e-10));
    }
    EXPECT_EQ(power_sgd->elements_before(), 3 * (6 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3));
  });
}

TEST(DdpHooks, PowerSgdOfZeros_StaysZero) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    DistributedDataParallel ddp(net, ctx.group());
    ddp.register_comm_hook(rehearse::parallel::power_sgd_hook(std::make_shared<PowerSgd>(
        ctx.group(), rehearse::parallel::PowerSgdOptions{.start_power_sgd_iter = 2, .min_compression_rate = 0.1})));
    for (int step = 0; step < 4; ++step) {
      ddp.zero_grad();
      (ddp(batch_of(ctx.rank(), step)) * 0).sum().backward();
    }
    for (const auto& gradient : gradient_copies(net->parameters())) EXPECT_THAT(gradient, BitEqual(gradient * 0));
    EXPECT_THAT(error_of<c10::ValueError>([&] { PowerSgd(ctx.group(), {.start_power_sgd_iter = 1}); }),
                HasSubstr("Expect `start_power_sgd_iter` > 1 if `use_error_feedback` or `warm_start` is enabled"));
    EXPECT_THAT(error_of<c10::ValueError>([&] { PowerSgd(ctx.group(), {.matrix_approximation_rank = 0}); }),
                HasSubstr("Expect `matrix_approximation_rank` > 0, got 0."));
  });
}

}  // namespace
