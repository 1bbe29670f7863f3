// SPDX-License-Identifier: BSD-3-Clause
// Contract: a remark names ranks whose optimizers step although nothing that they learn reaches other ranks.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "checked_world.h"

namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;
using Optimizers = std::vector<std::unique_ptr<torch::optim::Optimizer>>;

Optimizers all_optimizers(const std::vector<at::Tensor>& parameters) {
  Optimizers all;
  all.push_back(std::make_unique<torch::optim::SGD>(parameters, 0.1));
  all.push_back(std::make_unique<torch::optim::Adam>(parameters));
  all.push_back(std::make_unique<torch::optim::AdamW>(parameters));
  all.push_back(std::make_unique<torch::optim::Adagrad>(parameters));
  all.push_back(std::make_unique<torch::optim::RMSprop>(parameters));
  all.push_back(std::make_unique<torch::optim::LBFGS>(parameters, torch::optim::LBFGSOptions(0.1).max_iter(2)));
  return all;
}

// Trains for three steps; `talk` runs between backward and step. All ranks begin with the weights of rank 0.
template <class Talk>
Report train(const Talk& talk, std::size_t optimizer = 0, int ranks = 3) {
  return World(checked(ranks)).run([&](RankContext& ctx) {
    torch::nn::Linear net(4, 3);
    for (const auto& parameter : net->parameters()) {
      auto values = parameter.detach();
      ctx.group().broadcast(values)->wait();
    }
    const Optimizers all = all_optimizers(net->parameters());
    for (int step = 0; step < 3; ++step) {
      const auto forward = [&] {
        all[optimizer]->zero_grad();
        auto loss = net(at::ones({2, 4}) * (ctx.rank() + 1)).pow(2).mean();
        loss.backward();
        return loss;
      };
      auto loss = forward().detach();
      talk(ctx, *net, loss);
      all[optimizer]->step(forward);
    }
  });
}

void average_loss(RankContext& ctx, torch::nn::LinearImpl&, at::Tensor& loss) { ctx.group().allreduce(loss)->wait(); }

TEST(LoneTraining, WithEachOptimizer_IsRemarked) {
  for (std::size_t i = 0; i < 6; ++i) {
    const auto report = train(average_loss, i);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    ASSERT_EQ(report.remarks.size(), 1u) << i;
    EXPECT_EQ(report.remarks[0],
              "ranks 0-2: stepped an optimizer of 15 parameters 3 times, and no call after a step carried more than 2 "
              "numbers: no call of a group reduced the gradients, which is right only if ranks train alone or "
              "exchange gradients in another way");
  }
}

TEST(LoneTraining, WhatCarriesGradientsOrParameters_IsSilent) {
  const auto each = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    for (auto& parameter : net.parameters()) ctx.group().allreduce(parameter.mutable_grad())->wait();
  };
  const auto few_at_once = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    for (at::Tensor row : net.weight.mutable_grad().unbind(0)) ctx.group().allreduce(row)->wait();
  };
  // 15 numbers, never more than 2 at once
  const auto by_two = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    for (at::Tensor part : net.weight.mutable_grad().view(-1).split(2)) ctx.group().allreduce(part)->wait();
    for (at::Tensor part : net.bias.mutable_grad().split(2)) ctx.group().allreduce(part)->wait();
  };
  const auto coalesced = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    std::vector<at::Tensor> all;
    for (at::Tensor one : net.weight.mutable_grad().view(-1).split(1)) all.push_back(one);
    c10d::AllreduceCoalescedOptions options;
    ctx.group()->allreduce_coalesced(all, options)->wait();
  };
  const auto in_one = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    auto all = at::cat({net.weight.grad().flatten(), net.bias.grad()});
    ctx.group().allreduce(all)->wait();
  };
  const auto weights = [](RankContext& ctx, torch::nn::LinearImpl& net, at::Tensor&) {
    auto weight = net.weight.detach();
    ctx.group().allreduce(weight)->wait();
  };
  // A pipeline: only activations travel, and each stage has all gradients of its own parameters.
  const auto activations = [](RankContext& ctx, torch::nn::LinearImpl&, at::Tensor&) {
    auto batch = at::ones({4, 3});
    if (ctx.rank() > 0) ctx.group().recv(batch, ctx.rank() - 1)->wait();
    if (ctx.rank() + 1 < ctx.size()) ctx.group().send(batch, ctx.rank() + 1)->wait();
  };
  // A layer that is split by rows: each rank has all gradients of its own rows.
  const auto partial_results = [](RankContext& ctx, torch::nn::LinearImpl&, at::Tensor&) {
    auto results = at::ones({4, 1});
    ctx.group().allreduce(results)->wait();
  };
  EXPECT_TRUE(train(partial_results).remarks.empty());
  EXPECT_TRUE(train(each).remarks.empty());
  EXPECT_TRUE(train(few_at_once).remarks.empty());
  EXPECT_TRUE(train(by_two).remarks.empty());
  EXPECT_TRUE(train(coalesced).remarks.empty());
  EXPECT_TRUE(train(in_one).remarks.empty());
  EXPECT_TRUE(train(weights).remarks.empty());
  EXPECT_TRUE(train(activations).remarks.empty());
  EXPECT_TRUE(train(average_loss, 0, 1).remarks.empty());  // a lone rank
}

// The first ranks train for some steps by themselves. At the end, all get the mean or, from a lone rank, its weights.
Report train_apart(int trained, bool shares) {
  const auto report = World(checked(2)).run([=](RankContext& ctx) {
    torch::nn::Linear net(4, 3);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 3 && ctx.rank() < trained; ++step) {
      optimizer.zero_grad();
      net(at::ones({2, 4})).sum().backward();
      optimizer.step();
    }
    for (const auto& parameter : net->parameters()) {
      auto values = parameter.detach();
      if (shares) (trained == 1 ? ctx.group().broadcast(values) : ctx.group().allreduce(values))->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return report;
}

// Each rank trains for some steps by itself, and at the end all average what they have learnt.
TEST(LoneTraining, ThatEndsInAnAverage_IsSilent) {
  EXPECT_TRUE(train_apart(2, true).remarks.empty());
  EXPECT_EQ(train_apart(2, false).remarks.size(), 1u);
}

// The ranks make the same steps from the same numbers, as in an evolution strategy, and ask whether that is so.
TEST(LoneTraining, OfReplicasThatAreChecked_IsSilent) {
  for (const bool asks : {true, false}) {
    const auto report = World(checked(2)).run([=](RankContext& ctx) {
      torch::nn::Linear net(4, 3);
      for (const auto& parameter : net->parameters()) parameter.detach().fill_(1);
      torch::optim::SGD optimizer(net->parameters(), 0.1);
      for (int step = 0; step < 3; ++step) {
        net(at::ones({2, 4})).sum().backward();
        optimizer.step();
        if (asks) ctx.check_replicas(*net);
      }
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_EQ(report.remarks.size(), asks ? 0u : 1u);
  }
}

// Rank 0 trains for all, and the others evaluate what it sends at the end.
TEST(LoneTraining, OfOneRank_IsSilent) {
  EXPECT_TRUE(train_apart(1, true).remarks.empty());
  EXPECT_TRUE(train_apart(1, false).remarks.empty());
}

}  // namespace
}  // namespace checked_programs
