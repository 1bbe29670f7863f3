// SPDX-License-Identifier: BSD-3-Clause
// Contract: the check compares the ranks' step with the step of one process. It finds mistakes on which all ranks
// agree, and is silent for right programs whose steps differ by rounding only.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rand.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>

#include "checked_world.h"

namespace checks_test {
namespace {

at::Tensor part_of(int rank, int step = 0) {
  return (at::arange(12, at::kDouble).view({4, 3}) + rank * 5 + step).sin() * (rank + 1);
}

at::Tensor all_parts(int ranks, int step = 0) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(part_of(rank, step));
  return at::cat(parts);
}

// A model and the model of one process, which begins with the same values.
struct Twins {
  explicit Twins(at::ScalarType type = at::kDouble) {
    net->to(type);
    one->to(type);
    const at::NoGradGuard no_grad;
    for (const auto& each : net->named_parameters()) one->named_parameters()[each.key()].copy_(each.value());
  }
  torch::nn::Sequential net = make(), one = make();

 private:
  static torch::nn::Sequential make() {
    return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  }
};

at::Tensor loss_of(torch::nn::Sequential& net, const at::Tensor& batch) { return net->forward(batch).pow(2).mean(); }

// One step with gradients that `reduce` combines by hand. The rate of a rank is a factor of `of_all`.
Report with(
    const std::function<void(RankContext&, at::Tensor& gradient)>& reduce,
    const std::function<double(int rank)>& rate = [](int) { return 1; }, at::ScalarType type = at::kDouble,
    double of_all = 0.1) {
  return run([&](RankContext& ctx) {
    Twins twins(type);
    torch::optim::SGD optimizer(twins.net->parameters(), rate(ctx.rank()) * of_all);
    torch::optim::SGD of_one(twins.one->parameters(), of_all);
    loss_of(twins.net, part_of(ctx.rank()).to(type)).backward();
    for (auto& parameter : twins.net->parameters()) reduce(ctx, parameter.mutable_grad());
    if (rate(ctx.rank()) != 0) optimizer.step();
    ctx.check_step(twins.net, twins.one, [&] {
      loss_of(twins.one, all_parts(ctx.size()).to(type)).backward();
      of_one.step();
    });
  });
}

template <class Optimizer, template <class> class Wrapper, class... Options>
Report train(at::ScalarType type, Options... options) {
  return run([=](RankContext& ctx) {
    Twins twins(type);
    Wrapper wrapper(twins.net, ctx.group());
    Optimizer optimizer(wrapper.parameters(), options...), of_one(twins.one -> parameters(), options...);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      wrapper(part_of(ctx.rank(), step).to(type)).pow(2).mean().backward();
      optimizer.step();
      ctx.check_step(wrapper, twins.one, [&] {
        of_one.zero_grad();
        loss_of(twins.one, all_parts(ctx.size(), step).to(type)).backward();
        of_one.step();
      });
    }
  });
}

TEST(Steps, OfDdpAndFsdp_AreThoseOfOneProcess) {
  using torch::optim::Adam;
  using torch::optim::AdamOptions;
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const auto& report : {
             train<SGD, DistributedDataParallel>(type, SGDOptions(0.1).momentum(0.9).weight_decay(1e-2)),
             train<Adam, DistributedDataParallel>(type, AdamOptions(1e-2)),
             train<SGD, FullyShardedDataParallel>(type, SGDOptions(0.1).momentum(0.9).weight_decay(1e-2)),
             train<Adam, FullyShardedDataParallel>(type, AdamOptions(1e-2)),
         }) {
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
      EXPECT_EQ(report.checks.at("steps"), 5u);
    }
  }
}

// Ranks reach the check in every order. Two shards have two replicas each.
TEST(Steps, OfARightRun_AreSilentUnderManySchedules) {
  WorldOptions options;
  options.ranks = 4;
  options.preempt = true;
  options.network.jitter = 0.5;
  for (options.seed = 1; options.seed <= 10; ++options.seed) {
    const auto report = World(options).run([](RankContext& ctx) {
      Twins twins;
      const DeviceMesh mesh(ctx, {2, 2});
      FullyShardedDataParallel fsdp(twins.net, mesh);
      torch::optim::Adam optimizer(fsdp.parameters(), 1e-2), of_one(twins.one->parameters(), 1e-2);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        fsdp(part_of(ctx.rank(), step)).pow(2).mean().backward();
        optimizer.step();
        ctx.check_step(fsdp, twins.one, [&] {
          of_one.zero_grad();
          loss_of(twins.one, all_parts(ctx.size(), step)).backward();
          of_one.step();
        });
      }
    });
    ASSERT_EQ(report.verdict, Verdict::ok) << options.seed << ": " << report.headline;
    ASSERT_EQ(report.checks.at("steps"), 3u);
  }
}

// Each rank steps its own rows.
TEST(Steps, OfFsdpWithARateOfEachRank_NameTheRanks) {
  const auto step = [](const std::function<double(int rank)>& rate_of) {
    return run([&](RankContext& ctx) {
      Twins twins;
      FullyShardedDataParallel fsdp(twins.net, ctx.group());
      torch::optim::SGD optimizer(fsdp.parameters(), rate_of(ctx.rank())), of_one(twins.one->parameters(), 0.1);
      fsdp(part_of(ctx.rank())).pow(2).mean().backward();
      optimizer.step();
      ctx.check_step(fsdp, twins.one, [&] { (loss_of(twins.one, all_parts(4)).backward(), of_one.step()); });
    });
  };
  const auto one = step([](int rank) { return rank == 2 ? 0.05 : 0.1; });
  EXPECT_EQ(one.headline, in_steps("the steps of \"0.weight\" and 1 more are right in the rows of ranks 0-1,3, but "
                                   "those of rank 2 are 0.5 times as large"));
  EXPECT_EQ(one.findings.front().ranks, std::vector<int>{2});
  EXPECT_EQ(
      step([](int rank) { return 0.2 + 0.1 * rank; }).headline,
      in_steps("all 4 steps are wrong by another factor on each rank: those of rank 0 are 2 times as large, those "
               "of rank 1 are 3 times as large, those of rank 2 are 4 times as large, those of rank 3 are 5 "
               "times as large"));
}

void mean_by_hand(RankContext& ctx, at::Tensor& gradient) {
  ctx.group().allreduce(gradient, c10d::ReduceOp::AVG)->wait();
}

void add_up(RankContext& ctx, at::Tensor& gradient) { ctx.group().allreduce(gradient)->wait(); }

TEST(Steps, WithAMeanByHand_AreRight) {
  EXPECT_EQ(with(mean_by_hand).verdict, Verdict::ok);
  EXPECT_EQ(with(mean_by_hand, [](int) { return 0.5; }).headline,
            in_steps("all 4 steps are 0.5 times as large: divided by 2 once too often"));
}

TEST(Steps, WithASum_AreNTimesAsLarge) {
  EXPECT_EQ(with(add_up).headline, in_steps("all 4 steps are 4 times as large (= number of ranks): a sum over the "
                                            "ranks, or over a batch of 4, where the mean is meant"));
  // Ranks that differ by less than a rounding make no difference.
  const auto report = with(add_up, [](int rank) { return 1 + 4e-16 * rank; });
  EXPECT_EQ(report.headline, with(add_up).headline);
  EXPECT_TRUE(report.findings.at(0).details.empty()) << sim::to_text(report);
}

// The wrong ranks are those whose step is not that of one process, even if they are most, or if the mean is right.
TEST(Steps, OfRanksWithAnotherRate_BlameThese) {
  const auto expect_blame = [](std::vector<double> rates, const std::string& what, const std::vector<int>& ranks) {
    const auto report = with(mean_by_hand, [&](int rank) { return rates[static_cast<std::size_t>(rank)]; });
    EXPECT_EQ(report.headline, in_steps("all 4 steps are right on " + what));
    EXPECT_EQ(report.findings.at(0).ranks, ranks);
  };
  expect_blame({2, 1, 2, 2}, "rank 1, but those of ranks 0,2-3 are 2 times as large", {0, 2, 3});
  expect_blame({1, 1, 1.002, 1}, "ranks 0-1,3, but those of rank 2 are 1.002 times as large", {2});
  const std::string lower = "ranks 0,3, but those of rank 1 are 0.5 times as large, ";
  expect_blame({1, 0.5, 1.5, 1}, lower + "those of rank 2 are 1.5 times as large", {1, 2});
  expect_blame({1, 1, 0, 1}, "ranks 0-1,3, but those of rank 2 are zero or missing", {2});
}

// The smaller the step, the more of it is rounding.
TEST(Steps, InShortTypesAtAnyRate_HaveTheSameFactor) {
  for (const double rate : {0.1, 1e-2, 1e-3, 1e-4, 1e-5}) {
    const auto sum = with(add_up, [](int) { return 1; }, at::kFloat, rate);
    EXPECT_THAT(sum.headline, testing::StartsWith(in_steps("all 4 steps are 4 times as large"))) << rate;
    const auto of_one = with(mean_by_hand, [](int rank) { return rank == 2 ? 2 : 1; }, at::kFloat, rate);
    EXPECT_EQ(of_one.headline,
              in_steps("all 4 steps are right on ranks 0-1,3, but those of rank 2 are 2 times as large"))
        << rate;
    EXPECT_EQ(with(mean_by_hand, [](int) { return 1; }, at::kFloat, rate).verdict, Verdict::ok) << rate;
  }
}

TEST(Steps, WithoutAReduction_AreNamed) {
  EXPECT_EQ(with([](RankContext&, at::Tensor&) {}).headline,
            in_steps("all 4 steps are not reduced, or only in part: each rank has a part of its own (the mean of "
                     "all would be right)"));
}

// The mean over all 4 ranks of a loss that each rank has multiplied by the 2 ranks of its context group.
TEST(Steps, WithALossTimesTheRanksOfAGroup_AreTwiceAsLarge) {
  EXPECT_EQ(with([](RankContext& ctx, at::Tensor& gradient) {
              gradient.mul_(2);
              ctx.group().allreduce(gradient, c10d::ReduceOp::AVG)->wait();
            }).headline,
            in_steps("all 4 steps are 2 times as large: counted twice (reduced twice, a second backward, or no "
                     "zero_grad), or a sum over a batch of 2 where the mean is meant"));
}

// Adam's step does not depend on the scale of the gradient.
TEST(Steps, OfAdam_AreRightForAScaledGradient) {
  const auto report = run([](RankContext& ctx) {
    Twins twins(at::kFloat);
    torch::optim::Adam optimizer(twins.net->parameters(), 1e-2), of_one(twins.one->parameters(), 1e-2);
    loss_of(twins.net, part_of(ctx.rank()).to(at::kFloat)).backward();
    for (auto& parameter : twins.net->parameters()) ctx.group().allreduce(parameter.mutable_grad())->wait();
    optimizer.step();
    ctx.check_step(twins.net, twins.one, [&] {
      loss_of(twins.one, all_parts(ctx.size()).to(at::kFloat)).backward();
      of_one.step();
    });
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("steps"), 1u);
}

// Each rank has a half of the sequence, so the gradients of a norm are sums over both.
Report in_halves(bool sums_the_norm) {
  return run(
      [=](RankContext& ctx) {
        torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({3})), one(torch::nn::LayerNormOptions({3}));
        norm->to(at::kDouble);
        one->to(at::kDouble);
        torch::optim::SGD optimizer(norm->parameters(), 0.1), of_one(one->parameters(), 0.1);
        const auto loss = [](torch::nn::LayerNorm& layer, const at::Tensor& x) { return layer(x).pow(3).sum(); };
        loss(norm, part_of(ctx.rank())).backward();
        for (auto& parameter : norm->parameters()) {
          if (sums_the_norm) ctx.group().allreduce(parameter.mutable_grad())->wait();
        }
        optimizer.step();
        ctx.check_step(norm, one, [&] {
          loss(one, all_parts(2)).backward();
          of_one.step();
        });
      },
      2);
}

TEST(Steps, OfANormInASequenceGroup) {
  EXPECT_EQ(in_halves(true).verdict, Verdict::ok);
  EXPECT_EQ(in_halves(false).headline,
            in_steps("all 2 steps are not reduced, or only in part: each rank has a part of its own (the sum of "
                     "all would be right)"));
}

// Ranks have different numbers of rows, and compute the mean square of all rows.
Report with_rows(bool own_count) {
  return run([=](RankContext& ctx) {
    const auto rows = [](int rank) { return part_of(rank).narrow(0, 0, rank + 1); };
    torch::nn::Linear net(3, 1), one(3, 1);
    net->to(at::kDouble);
    one->to(at::kDouble);
    {
      const at::NoGradGuard no_grad;
      one->weight.copy_(net->weight);
      one->bias.copy_(net->bias);
    }
    torch::optim::SGD optimizer(net->parameters(), 0.1), of_one(one->parameters(), 0.1);
    const auto count = own_count ? ctx.rank() + 1 : 10;
    const auto scale = own_count ? ctx.size() : 1;
    (net(rows(ctx.rank())).pow(2).sum() / count / scale).backward();
    for (auto& parameter : net->parameters()) ctx.group().allreduce(parameter.mutable_grad())->wait();
    optimizer.step();
    ctx.check_step(net, one, [&] {
      one(at::cat({rows(0), rows(1), rows(2), rows(3)})).pow(2).mean().backward();
      of_one.step();
    });
  });
}

TEST(Steps, WithTheOwnNumberOfRows_AreNoMultiple) {
  EXPECT_EQ(with_rows(false).verdict, Verdict::ok);
  EXPECT_TRUE(
      with_rows(true).headline.starts_with(in_steps("all 2 steps are no multiple of what one process "
                                                    "computes")))
      << with_rows(true).headline;
}

// The gradient of a bias before a BatchNorm is the rounding error of terms that cancel. Adam makes full steps of it.
TEST(Steps, OfAdamForAGradientThatIsRounding_AreSilent) {
  const auto report = run([](RankContext& ctx) {
    const auto make = [] {
      return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1));
    };
    auto net = make(), one = make();
    {
      const at::NoGradGuard no_grad;
      for (const auto& each : net->named_parameters()) one->named_parameters()[each.key()].copy_(each.value());
    }
    torch::optim::Adam optimizer(net->parameters(), 1e-2), of_one(one->parameters(), 1e-2);
    const auto batch = part_of(1).to(at::kFloat);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      // All ranks have the same rows, in another order.
      loss_of(net, batch.roll(ctx.rank(), 0)).backward();
      for (auto& parameter : net->parameters())
        ctx.group().allreduce(parameter.mutable_grad(), c10d::ReduceOp::AVG)->wait();
      optimizer.step();
      ctx.check_step(net, one, [&] {
        of_one.zero_grad();
        loss_of(one, batch).backward();
        of_one.step();
      });
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  EXPECT_EQ(report.checks.at("steps"), 4u);
}

// A wrong step that is smaller than the rounding of bfloat16 looks like a right one.
TEST(Steps, BelowTheRounding_AreRemarked) {
  const auto train = [](double rate) {
    return run([rate](RankContext& ctx) {
      auto value = at::ones({4}, at::kBFloat16), one = value.clone();
      value.sub_(4 * rate);
      ctx.check_step({{"w", value}}, {{"w", one}}, [&] { one.sub_(rate); });
    });
  };
  EXPECT_EQ(train(0.125).verdict, Verdict::check_failed);
  EXPECT_TRUE(train(0).remarks.empty());
  const auto report = train(std::ldexp(1, -8));
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.remarks, std::vector<std::string>{"rank 0: check \"steps\" sees nothing of a step that is smaller "
                                                     "than four roundings of the parameters. Train in double"});
}

TEST(Steps, OfARankThatDiffers_AreNamed) {
  const auto report = with([](RankContext& ctx, at::Tensor& gradient) {
    ctx.group().allreduce(gradient, c10d::ReduceOp::AVG)->wait();
    if (ctx.rank() == 2) gradient.mul_(3);
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{2});
}

TEST(Steps, OfOtherNames_AreFindings) {
  const auto report = run([](RankContext& ctx) {
    torch::nn::Linear net(3, 1), one(torch::nn::LinearOptions(3, 1).bias(false));
    ctx.check_step(net, {{"weight", one->weight}, {"scale", at::ones({1})}}, [] {});
  });
  EXPECT_TRUE(is_said(report, "the step of \"scale\" is that of a parameter that the ranks do not have") ||
              report.headline.find("\"scale\"") != std::string::npos)
      << sim::to_text(report);
  EXPECT_TRUE(is_said(report, "the step of \"bias\" is that of a parameter that not all ranks have"));
}

// The function's draws are not the program's, and its group calls are refused.
TEST(Steps, TheStepOfOneProcess_IsAlone) {
  const auto report = run([](RankContext& ctx) {
    const auto value = at::ones({2});
    for (int i = 0; i < 3; ++i) ctx.check_step({{"w", value}}, {{"w", value.clone()}}, [] { at::rand({5}); });
    ctx.check_draws();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  const auto bad = run([](RankContext& ctx) {
    auto value = at::ones({2});
    ctx.check_step({{"w", value}}, {{"w", value}}, [&] { ctx.group().allreduce(value)->wait(); });
  });
  EXPECT_NE(bad.headline.find("the function given to RankContext::check_step() calls allreduce"), std::string::npos);
}

}  // namespace
}  // namespace checks_test
