// SPDX-License-Identifier: BSD-3-Clause
// After backward, each rank's gradients are those of one process with the whole batch, whatever the schedule.
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::DistributedDataParallelOptions;
using rehearse::RankContext;
using rehearse::test::BitEqual;

constexpr int kSteps = 4;
constexpr double kRate = 0.0625;

struct Trajectory {
  std::vector<std::vector<at::Tensor>> gradients;  // of each step
  std::vector<at::Tensor> parameters;
};

// The reference: one process with the whole batch. Its loss is the mean over ranks of the ranks' summed losses.
Trajectory reference(int ranks) {
  Mlp net;
  fill(*net);
  Trajectory result;
  for (int step = 0; step < kSteps; ++step) {
    net->zero_grad();
    (net(whole_batch(ranks, step)).square().sum() / ranks).backward();
    result.gradients.push_back(gradient_copies(net->parameters()));
    descend(net->parameters(), kRate / 16);
  }
  result.parameters = copies(net->parameters());
  return result;
}

Trajectory train(RankContext& ctx, const DistributedDataParallelOptions& options) {
  Mlp net;
  fill(*net, /*salt=*/7 * ctx.rank());  // only rank 0's values may survive
  DistributedDataParallel ddp(net, ctx.group(), options);
  Trajectory result;
  for (int step = 0; step < kSteps; ++step) {
    ddp.zero_grad(/*set_to_none=*/!options.gradient_as_bucket_view);
    ddp.forward(batch_of(ctx.rank(), step)).square().sum().backward();
    result.gradients.push_back(gradient_copies(ddp.parameters()));
    descend(ddp.parameters(), kRate / 16);
  }
  result.parameters = copies(ddp.parameters());
  return result;
}

std::vector<Trajectory> train_ranks(const rehearse::WorldOptions& world,
                                    const DistributedDataParallelOptions& options) {
  std::vector<Trajectory> results(world.ranks);
  run_ranks(world, [&](RankContext& ctx) { results[ctx.rank()] = train(ctx, options); });
  return results;
}

constexpr double kOneParameterABucket = 1.0 / (1 << 20);

void expect_whole_batch(int ranks, const DistributedDataParallelOptions& options) {
  const auto expected = reference(ranks);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto results = train_ranks({.ranks = ranks, .seed = seed}, options);
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_TRUE(close(results[0].gradients[step], expected.gradients[step])) << "step " << step;
    }
    EXPECT_TRUE(close(results[0].parameters, expected.parameters));
    for (const auto& result : results) EXPECT_THAT(result.parameters, BitEqual(results[0].parameters));
  }
}

// Parameters: gradient_as_bucket_view, find_unused_parameters.
class DdpGradients : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(DdpGradients, EachStep_EqualsOneProcessWithTheWholeBatch) {
  const auto [views, find_unused] = GetParam();
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const double cap_mb : {25.0, kOneParameterABucket, 0.001}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, buckets of " << cap_mb << " MiB");
      expect_whole_batch(
          ranks, {.bucket_cap_mb = cap_mb, .gradient_as_bucket_view = views, .find_unused_parameters = find_unused});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, DdpGradients, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

// The values are multiples of 1/16, and the numbers of ranks are powers of two, so no sum and no mean rounds.
TEST(DdpGradientsExact, IntegersOnPowersOfTwo_NoRounding) {
  for (const int ranks : {2, 4, 8}) {
    torch::nn::Linear net(6, 3);
    net->to(at::kDouble);
    fill(*net);
    net(whole_batch(ranks, 0)).sum().div(ranks).backward();
    const auto expected = gradient_copies(net->parameters());
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      torch::nn::Linear replica(6, 3);
      replica->to(at::kDouble);
      fill(*replica);
      DistributedDataParallel ddp(replica, ctx.group());
      ddp(batch_of(ctx.rank(), 0)).sum().backward();
      EXPECT_THAT(gradient_copies(ddp.parameters()), BitEqual(expected)) << ranks << " ranks";
    });
  }
}

// The parameters are floats, so that another order of additions would give other bits.
TEST(DdpSchedules, SeedsAndSchedulers_SameBits) {
  std::vector<at::Tensor> first;
  const auto train_with = [&](std::uint64_t seed, rehearse::Schedule schedule) {
    run_ranks({.ranks = 5, .seed = seed, .schedule = schedule}, [&](RankContext& ctx) {
      Mlp net(6, 16, 3, at::kFloat);
      fill(*net);
      DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.001});
      for (int step = 0; step < kSteps; ++step) {
        ddp.zero_grad();
        ddp(at::sin(batch_of(ctx.rank(), step).to(at::kFloat) * 3.3)).square().mean().backward();
        descend(ddp.parameters(), 0.1);
      }
      if (first.empty()) first = copies(ddp.parameters());
      EXPECT_THAT(ddp.parameters(), BitEqual(first)) << "seed " << seed << ", rank " << ctx.rank();
    });
  };
  train_with(1, rehearse::Schedule::round_robin);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) train_with(seed, rehearse::Schedule::random);
}

TEST(DdpSchedules, Ranks256_ReplicasStayEqual) {
  constexpr int kRanks = 256;
  at::Tensor first;
  run_ranks({.ranks = kRanks, .stack_bytes = 1 << 20}, [&](RankContext& ctx) {
    Mlp net;
    fill(*net, ctx.rank());
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.001});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      ddp(batch_of(ctx.rank(), step)).square().sum().backward();
      descend(ddp.parameters(), kRate / 16);
    }
    const auto flat = at::cat({net->first->weight.detach().flatten(), net->third->bias.detach()});
    if (!first.defined()) first = flat;
    EXPECT_THAT(flat, BitEqual(first));
  });
}

// The backward suspends in the hook, in the middle of autograd's work and before the reducer's all-reduces.
TEST(DdpHooks, CollectiveInsideBackward_SeesAllRanks) {
  run_ranks({.ranks = 4, .seed = 5}, [](RankContext& ctx) {
    Mlp net;
    fill(*net);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = kOneParameterABucket});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      auto y = ddp(batch_of(0, step));
      y.register_hook([&](const at::Tensor& gradient) {
        auto sum = gradient.clone();
        ctx.group().allreduce(sum)->wait();
        return sum;
      });
      y.sum().backward();
      // All ranks have the same batch, so the hook multiplies the gradient by the number of ranks.
      Mlp alone;
      fill(*alone);
      (alone(batch_of(0, step)).sum() * 4).backward();
      EXPECT_TRUE(close(gradient_copies(ddp.parameters()), gradient_copies(alone->parameters())));
    }
  });
}

TEST(DdpHooks, ReentrantBackwardWithCollective_Completes) {
  run_ranks({.ranks = 8, .seed = 9}, [](RankContext& ctx) {
    Mlp net;
    fill(*net);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = kOneParameterABucket});
    auto y = ddp(batch_of(ctx.rank(), 0));
    double inner_gradient = 0;
    y.register_hook([&](const at::Tensor& gradient) {
      const at::AutoGradMode record(true);
      auto inner = at::ones({3}, at::kDouble).requires_grad_();
      inner.register_hook([&](const at::Tensor& g) {
        auto ranks = at::full({1}, static_cast<double>(ctx.rank()), at::kDouble);
        ctx.group().allreduce(ranks)->wait();
        return g * ranks;
      });
      (inner * 2).sum().backward();
      inner_gradient = inner.grad()[0].item<double>();
      return gradient;
    });
    y.sum().backward();
    EXPECT_EQ(inner_gradient, 2.0 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7));
  });
}

}  // namespace
