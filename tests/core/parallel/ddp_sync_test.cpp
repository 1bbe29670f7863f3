// SPDX-License-Identifier: BSD-3-Clause
// no_sync() and join() determine in which iterations DDP reduces, and over which ranks. The reference is one process
// that has all ranks' inputs.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::Verdict;
using rehearse::test::BitEqual;
using ::testing::Conditional;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Options = rehearse::DistributedDataParallelOptions;

constexpr double kSyncRate = 1.0 / 256;

TEST(DdpNoSync, MicroBatches_AddUpToTheWholeBatchOfAll) {
  for (const bool views : {false, true}) {
    for_ranks_and_seeds([&](RankContext& ctx) {
      Mlp net, alone;
      fill(*net);
      fill(*alone);
      DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 0.001, .gradient_as_bucket_view = views});
      for (int step = 0; step < 3; ++step) {
        ddp.zero_grad(/*set_to_none=*/!views);
        alone->zero_grad();
        {
          const auto guard = ddp.no_sync();
          const auto nested = ddp.no_sync();
          ddp(batch_of(ctx.rank(), 2 * step)).square().sum().backward();
        }
        ddp(batch_of(ctx.rank(), 2 * step + 1)).square().sum().backward();
        for (const int part : {2 * step, 2 * step + 1}) {
          (alone(whole_batch(ctx.size(), part)).square().sum() / ctx.size()).backward();
        }
        EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters())));
        descend(ddp.parameters(), kSyncRate);
        descend(alone->parameters(), kSyncRate);
      }
    });
  }
}

// The number of operations in a world whose ranks end with `more` iterations without synchronization.
std::uint64_t operations_with(int more) {
  rehearse::World world({.ranks = 3});
  const auto report = world.run([&](RankContext& ctx) {
    Mlp net, alone;
    fill(*net);
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group());
    for (int step = 0; step < 2; ++step) ddp(batch_of(ctx.rank(), 0)).sum().backward();
    ddp.zero_grad();
    const auto guard = ddp.no_sync();
    for (int step = 0; step < more; ++step) {
      ddp(batch_of(ctx.rank(), step)).sum().backward();
      alone(batch_of(ctx.rank(), step)).sum().backward();
      EXPECT_THAT(gradient_copies(net->parameters()), BitEqual(gradient_copies(alone->parameters())));
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << brief(report);
  return world.events().size();
}

TEST(DdpNoSync, Inside_GradientsAreTheRanksOwnAndNothingIsSent) {
  const auto operations = operations_with(0);
  EXPECT_EQ(operations, 18u);
  EXPECT_EQ(operations_with(3), operations);
}

// A forward outside of no_sync() prepares one reduction, which the next backward uses, whichever forward it belongs to.
// The expected gradients of rank 0 are those of one Linear(1, 1), whose input is 1 or 3 on rank 0 and 3 or 5 on rank 1.
struct TwoForwards {
  bool first_inside = false, second_inside = false;
  std::string backwards;  // of the first and the second forward: 'a' and 'b', '+' for both at once
  std::vector<double> gradients;
  bool remarked = false;
};

class DdpOfTwoForwards : public testing::TestWithParam<TwoForwards> {};

TEST_P(DdpOfTwoForwards, OneBackwardIsReduced) {
  const auto& param = GetParam();
  const auto report = rehearse::World({.ranks = 2}).run([&](RankContext& ctx) {
    torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
    DistributedDataParallel ddp(net, ctx.group());
    const auto forward = [&](bool inside, int x) {
      std::optional<rehearse::parallel::NoSyncGuard<rehearse::parallel::ReducerSession>> guard;
      if (inside) guard.emplace(ddp.no_sync());
      return ddp(at::full({1, 1}, 1.0 * x + 2 * ctx.rank())).sum();
    };
    for (int step = 0; step < 2; ++step) {
      ddp.zero_grad();
      const auto a = forward(param.first_inside, 1), b = forward(param.second_inside, 3);
      std::vector<double> gradients;
      for (const char which : param.backwards) {
        (which == '+' ? a + b : which == 'a' ? a : b).backward({}, /*retain_graph=*/true);
        gradients.push_back(net->weight.grad().item<double>());
      }
      EXPECT_TRUE(ctx.rank() != 0 || gradients == param.gradients) << testing::PrintToString(gradients);
      // An output's gradient alone changes no gradient of a parameter.
      const auto x = at::ones({1, 1}).requires_grad_();
      const auto y = ddp(x).sum();
      y.backward({}, /*retain_graph=*/true);
      torch::autograd::grad({y}, {x});
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << brief(report);
  const auto is_told = StartsWith("ranks 0-1: DDP #1 on group \"world\" did not reduce the gradients of a backward");
  EXPECT_THAT(report.remarks, Conditional(param.remarked, ElementsAre(is_told), IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(All, DdpOfTwoForwards,
                         testing::Values(TwoForwards{true, true, "ab", {1, 4}}, TwoForwards{true, false, "ba", {4, 5}},
                                         TwoForwards{true, false, "ab", {2, 5}, true},
                                         TwoForwards{false, true, "ba", {4, 5}, true},
                                         TwoForwards{false, true, "ab", {2, 5}}, TwoForwards{false, false, "+", {6}},
                                         TwoForwards{true, false, "+", {6}}, TwoForwards{false, true, "+", {6}},
                                         TwoForwards{false, false, "ab", {2, 5}, true},
                                         TwoForwards{false, false, "aa", {2, 3}, true}));

// The reference for join(). Each step adds up the gradients of the ranks that still have inputs, and divides the sum by
// the number of all ranks or of these ranks.
int inputs_of(int rank) { return 1 + 2 * rank % 5; }

std::vector<at::Tensor> joined_alone(int ranks, bool divide_by_initial) {
  Mlp net;
  fill(*net);
  for (int step = 0; step < 5; ++step) {
    net->zero_grad();
    int active = 0;
    for (int rank = 0; rank < ranks; ++rank) active += step < inputs_of(rank);
    if (active == 0) break;
    for (int rank = 0; rank < ranks; ++rank) {
      if (step >= inputs_of(rank)) continue;
      (net(batch_of(rank, step)).square().sum() / (divide_by_initial ? ranks : active)).backward();
    }
    descend(net->parameters(), kSyncRate);
  }
  return copies(net->parameters());
}

TEST(DdpJoin, UnevenInputs_GradientsOfThoseThatHaveSome) {
  for (const bool initial : {true, false}) {
    for (const Options& options : {Options{}, Options{.bucket_cap_mb = 0.001}, Options{.find_unused_parameters = true},
                                   Options{.gradient_as_bucket_view = true}}) {
      for_ranks_and_seeds([&](RankContext& ctx) {
        Mlp net;
        fill(*net);
        DistributedDataParallel ddp(net, ctx.group(), options);
        ddp.join(
            [&] {
              for (int step = 0; step < inputs_of(ctx.rank()); ++step) {
                ddp.zero_grad(!options.gradient_as_bucket_view);
                ddp(batch_of(ctx.rank(), step)).square().sum().backward();
                descend(ddp.parameters(), kSyncRate);
              }
            },
            {.divide_by_initial_world_size = initial});
        EXPECT_TRUE(close(copies(net->parameters()), joined_alone(ctx.size(), initial)));
        // After join(), training goes on as before.
        ddp.zero_grad();
        ddp(batch_of(ctx.rank(), 9)).sum().backward();
        Mlp alone;
        {
          const at::NoGradGuard no_grad;
          for (std::size_t i = 0; i < alone->parameters().size(); ++i)
            alone->parameters()[i].copy_(net->parameters()[i]);
        }
        (alone(whole_batch(ctx.size(), 9)).sum() / ctx.size()).backward();
        EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters())));
      });
    }
  }
}

TEST(DdpJoin, EarlyTermination_EveryRankThrowsWhatPyTorchSays) {
  run_ranks({.ranks = 4}, [](RankContext& ctx) {
    Mlp net;
    DistributedDataParallel ddp(net, ctx.group());
    int steps = 0;
    const auto error = error_of<c10::Error>([&] {
      ddp.join(
          [&] {
            for (; steps < (ctx.rank() == 2 ? 3 : 7); ++steps) ddp(batch_of(0, steps)).sum().backward();
          },
          {.throw_on_early_termination = true});
    });
    EXPECT_EQ(steps, 3);
    EXPECT_THAT(error, HasSubstr(ctx.rank() == 2 ? "Rank 2 exhausted all inputs."
                                                 : "Detected at least one rank that exhausted inputs. Throwing "
                                                   "across all ranks."));
  });
}

TEST(DdpJoin, BodyThrowsOrNests_ErrorPassesAndObjectRemains) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    DistributedDataParallel ddp(net, ctx.group());
    EXPECT_THROW(ddp.join([] { throw std::runtime_error("mine"); }), std::runtime_error);
    EXPECT_THAT(error_of<c10::Error>([&] { ddp.join([&] { ddp.join([] {}); }); }),
                HasSubstr("join() inside of join()"));
    ddp(batch_of(ctx.rank(), 0)).sum().backward();
  });
}

}  // namespace
