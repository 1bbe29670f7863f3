// SPDX-License-Identifier: BSD-3-Clause
// Contract: the check finds the first difference of replicas: the rank, the tensor, by how much, and the operation that
// made it. Equal replicas are no finding. The check does not wait for ranks that leave early.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "checked_world.h"

namespace checks_test {
namespace {

constexpr int kStepsByHand = 5;

// Data parallel training by hand. Rank `forgetful` applies its own gradient in the third step.
void train_by_hand(RankContext& ctx, int forgetful = -1, bool checks = true) {
  auto weight = at::zeros({2, 3}, at::kDouble), bias = at::zeros({2}, at::kDouble);
  for (int step = 1; step <= kStepsByHand; ++step) {
    const auto own = at::full({2, 3}, ctx.rank() + 1.0, at::kDouble);
    auto mean = own.clone();
    ctx.group().allreduce(mean)->wait();
    mean.div_(ctx.size());
    bias.sub_(1);
    weight.sub_(ctx.rank() == forgetful && step == 3 ? own : mean);
    if (checks) ctx.check_replicas({{"fc.weight", weight}, {"fc.bias", bias}});
  }
}

TEST(Replicas, AForgottenSync_IsFoundInItsStep) {
  const auto report = run([](RankContext& ctx) { train_by_hand(ctx, 2); });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.headline,
            "replicas differ in check #3: rank 2 has a different \"fc.weight\" than ranks 0-1,3 (6 of 6 elements, by "
            "up to 0.5 at [0, 0]: -8, not -7.5)");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].ranks, std::vector<int>{2});
  EXPECT_EQ(report.findings[0].details.at(0), "in check #2 all ranks were equal");
  EXPECT_TRUE(is_said(report, "first operation that differs: aten::sub_ on \"fc.weight\" at replicas_test.cpp:"));
  EXPECT_NE(
      details_of(report).back().find("rank 2 has a different result, because its argument \"other\" differed already"),
      std::string::npos);
  EXPECT_EQ(report.checks.at("replicas"), 2u);
}

TEST(Replicas, OfWhichEachRankHasAnotherWrongTensor_BlameAll) {
  const auto report = run([](RankContext& ctx) {
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < ctx.size(); ++i) tensors.push_back(at::zeros({4}));
    tensors[static_cast<std::size_t>(ctx.rank())].add_(1);
    ctx.check_replicas({{"w0", tensors[0]}, {"w1", tensors[1]}, {"w2", tensors[2]}, {"w3", tensors[3]}});
  });
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].ranks, (std::vector{0, 1, 2, 3}));
}

TEST(Replicas, ThatAnOperatorOfOneRankChanged_HaveItsPlace) {
  int line = 0;
  const auto report = run([&line](RankContext& ctx) {
    auto weight = at::ones({4});
    ctx.check_replicas({{"w", weight}});
    line = __LINE__ + 1;
    if (ctx.rank() == 2) weight.mul_(2);
    ctx.check_replicas({{"w", weight}});
    ctx.group().barrier()->wait();
  });
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].ranks, std::vector{2});
  EXPECT_EQ(report.findings[0].where.line, line);
}

TEST(Replicas, EqualOnes_AreCounted_AndTheRunIsTheSame) {
  const auto checked = run([](RankContext& ctx) { train_by_hand(ctx); });
  const auto unchecked = run([](RankContext& ctx) { train_by_hand(ctx, -1, false); });
  EXPECT_EQ(checked.verdict, Verdict::ok);
  EXPECT_EQ(checked.checks.at("replicas"), static_cast<std::uint64_t>(kStepsByHand));
  EXPECT_EQ(checked.identity, unchecked.identity);
  EXPECT_EQ(checked.operations, unchecked.operations);
  EXPECT_EQ(checked.end_time, unchecked.end_time);
}

TEST(Replicas, OfTwoRanks_NoneIsTheMajority) {
  const auto report = run([](RankContext& ctx) { ctx.check_replicas({{"w", at::ones({2}) * ctx.rank()}}); }, 2);
  EXPECT_EQ(
      report.headline,
      "replicas differ in check #1: ranks 0-1 have 2 different \"w\" (rank 1 against rank 0: 2 of 2 elements, by up "
      "to 1 at [0]: 1, not 0)");
  EXPECT_EQ(report.findings.at(0).ranks, (std::vector<int>{0, 1}));
  EXPECT_TRUE(is_said(report, "this is the first check of this name"));
}

TEST(Replicas, AllSteppedAlone_AllAreNamed) {
  const auto report = run([](RankContext& ctx) { ctx.check_replicas({{"w", at::ones({1}) * ctx.rank()}}); }, 3);
  EXPECT_EQ(
      report.headline,
      "replicas differ in check #1: ranks 0-2 have 3 different \"w\" (rank 1 against rank 0: 1 of 1 element, by up "
      "to 1 at [0]: 1, not 0)");
}

TEST(Replicas, AStepLeftOut_IsNamed) {
  const auto report = run([](RankContext& ctx) {
    auto weight = at::zeros({2});
    for (int step = 1; step <= 3; ++step) {
      if (ctx.rank() != 1 || step != 2) weight.add_(1);
      ctx.check_replicas({{"w", weight}});
    }
  });
  EXPECT_EQ(report.headline,
            "replicas differ in check #2: rank 1 has a different \"w\" than ranks 0,2-3 (2 of 2 elements, by up to 1 "
            "at [0]: 1, not 2)");
  EXPECT_TRUE(is_said(report, "first operation that differs: ranks 0,2-3: aten::add_ on \"w\" at replicas_test.cpp:"));
  EXPECT_NE(details_of(report).back().find("; rank 1 makes no further change"), std::string::npos);
  // The place of the culprit is the line that it left out.
  const auto& where = report.findings.at(0).where;
  EXPECT_NE(details_of(report).back().find("on \"w\" at " + where.text + ";"), std::string::npos) << where.text;
}

TEST(Replicas, AnotherLearningRate_IsNamed) {
  WorldOptions options{.ranks = 4};
  options.checks.replicas = false;  // leaves the finding to the check of the program
  const auto report = run(options, [](RankContext& ctx) {
    torch::nn::Linear net(3, 2);
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), ctx.rank() == 3 ? 0.5 : 0.25);
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      ddp(at::ones({4, 3})).sum().backward();
      ctx.check_replicas(ddp);
      optimizer.step();
    }
  });
  EXPECT_TRUE(
      report.headline.starts_with("replicas differ in check #2: rank 3 has a different \"weight\" than ranks 0-2"));
  EXPECT_NE(
      details_of(report).back().find("because its arguments differ: alpha=-0.25 on ranks 0-2, alpha=-0.5 on rank 3"),
      std::string::npos)
      << details_of(report).back();
}

TEST(Replicas, BuffersAlone_AreReportedAsBuffers) {
  const auto body = [](bool broadcast, std::optional<bool> looked_at) {
    return [=](RankContext& ctx) {
      torch::nn::BatchNorm1d net(2);
      DistributedDataParallel ddp(net, ctx.group(), {.broadcast_buffers = broadcast});
      for (int step = 0; step < 2; ++step) {
        ddp(at::ones({4, 2}) * ctx.rank()).sum().backward();
        ctx.check_replicas(ddp, {.buffers = looked_at});
      }
    };
  };
  const auto report = run(body(false, {}));
  EXPECT_TRUE(report.headline.starts_with(
      "buffers differ in check #1 although all parameters agree: ranks 0-3 have 4 different \"running_mean\""))
      << report.headline;
  EXPECT_TRUE(is_said(report, "statistics that a module keeps of its inputs"));
  EXPECT_EQ(run(body(false, false)).verdict, Verdict::ok);
  // With broadcast_buffers, the ranks' buffers may differ until the next forward.
  EXPECT_EQ(run(body(true, {})).verdict, Verdict::ok);
  EXPECT_EQ(run(body(true, true)).verdict, Verdict::check_failed);
}

// Nobody sends buffers without broadcast_buffers. A load on one rank leaves the others with their own.
Report with_own_buffers(const std::function<void(RankContext&, torch::nn::BatchNorm1d&)>& load,
                        bool evaluates = false) {
  WorldOptions options;
  options.ranks = 4;
  options.checks.replicas = true;
  return run(options, [&](RankContext& ctx) {
    torch::nn::BatchNorm1d net(2);
    DistributedDataParallel ddp(net, ctx.group(), {.broadcast_buffers = false});
    const at::NoGradGuard no_grad;
    load(ctx, net);
    if (evaluates) {
      net->eval();
      ddp(at::ones({4, 2}) * ctx.rank());
      net->train();
    }
    for (int step = 0; step < 3; ++step) {
      const at::AutoGradMode with_grad(true);
      ddp(at::ones({4, 2}) * ctx.rank()).sum().backward();
    }
  });
}

TEST(Replicas, BuffersThatOneRankLoaded_AreFoundInTheFirstForward) {
  const auto load = [](bool on_all) {
    return [on_all](RankContext& ctx, torch::nn::BatchNorm1d& net) {
      if (on_all || ctx.rank() == 0) net->running_mean.fill_(3);
    };
  };
  for (const bool evaluates : {false, true}) {
    const auto report = with_own_buffers(load(false), evaluates);
    EXPECT_TRUE(report.headline.starts_with(
        "buffers of \"DDP #1 on group \"world\"\" differ in check #1 although all parameters agree: rank 0 has a "
        "different \"running_mean\" than ranks 1-3"))
        << report.headline;
    // The statistics follow each rank's own data from then on.
    const auto right = with_own_buffers(load(true), evaluates);
    EXPECT_EQ(right.verdict, Verdict::ok) << right.headline;
  }
}

// The learning rate is lowered when the loss of the rank stops falling, or when the mean of all losses does.
TEST(Replicas, WithARateThatFollowsTheOwnLoss_Differ) {
  const auto train = [](bool own) {
    WorldOptions options;
    options.ranks = 4;
    options.checks.replicas = true;
    return run(options, [own](RankContext& ctx) {
      torch::nn::Linear net(2, 1);
      DistributedDataParallel ddp(net, ctx.group());
      torch::optim::SGD optimizer(ddp.parameters(), 0.1);
      double best = std::numeric_limits<double>::infinity();
      for (int step = 0; step < 4; ++step) {
        ddp.zero_grad();
        const auto loss = (ddp(at::ones({4, 2})) - (ctx.rank() == 2 ? 50.0 * step : 1.0)).pow(2).mean();
        loss.backward();
        auto judged = loss.detach().clone();
        if (!own) ctx.group().allreduce(judged, c10d::ReduceOp::AVG)->wait();
        auto& group = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
        if (judged.item<double>() > best) group.lr(group.lr() / 10);
        best = std::min(best, judged.item<double>());
        optimizer.step();
      }
    });
  };
  EXPECT_EQ(train(false).verdict, Verdict::ok);
  const auto report = train(true);
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{2}) << report.headline;
}

TEST(Replicas, OfOtherShapeDtypeAndNumber) {
  const auto headline = [](const std::function<rehearse::checks::ModelState(int)>& of) {
    return run([&](RankContext& ctx) { ctx.check_replicas(of(ctx.rank())); }).headline;
  };
  EXPECT_EQ(
      headline([](int rank) { return rehearse::checks::ModelState{{"w", at::ones({rank == 1 ? 3 : 2})}}; }),
      "replicas differ in check #1: rank 1 has a different \"w\" than ranks 0,2-3 (Float of [3], not Float of [2])");
  EXPECT_EQ(
      headline([](int rank) {
        return rehearse::checks::ModelState{{"w", at::ones({2}, rank == 1 ? at::kHalf : at::kFloat)}};
      }),
      "replicas differ in check #1: rank 1 has a different \"w\" than ranks 0,2-3 (Half of [2], not Float of [2])");
  EXPECT_EQ(headline([](int rank) {
              std::vector<rehearse::checks::NamedTensor> tensors{{"w", at::ones({2})}};
              if (rank != 3) tensors.push_back({"extra", at::ones({1})});
              return rehearse::checks::ModelState(tensors);
            }),
            "replicas differ in check #1: rank 3 has no \"extra\", which ranks 0-2 have");
  EXPECT_EQ(headline([](int rank) {
              std::vector<rehearse::checks::NamedTensor> tensors;
              if (rank == 3) tensors.push_back({"extra", at::ones({1})});
              return rehearse::checks::ModelState(tensors);
            }),
            "replicas differ in check #1: ranks 0-2 have no \"extra\", which rank 3 has");
}

TEST(Replicas, OddStates_AreEqual) {
  const auto report = run([](RankContext& ctx) {
    ctx.check_replicas(torch::nn::Module());
    ctx.check_replicas({{"nan", at::full({3}, std::numeric_limits<double>::quiet_NaN())}, {"none", at::empty({0})}});
    const auto square = at::ones({4, 4}).cumsum(1);
    ctx.check_replicas({{"t", ctx.rank() == 0 ? square.t() : square.t().contiguous()}, {"undefined", at::Tensor()}});
    ctx.check_replicas({{"twice", at::ones({1})}, {"twice", at::zeros({1})}});
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("replicas"), 4u);
}

TEST(Replicas, RanksThatLeaveEarly_AreNotWaitedFor) {
  const auto body = [](int different) {
    return [=](RankContext& ctx) {
      const int checks = ctx.rank() == 1 ? 2 : 200;
      for (int i = 0; i < checks; ++i) {
        ctx.check_replicas({{"w", at::full({1}, ctx.rank() == different && i == 150 ? 1.0 : 0.0)}});
      }
    };
  };
  EXPECT_EQ(run(body(-1)).verdict, Verdict::ok);
  const auto report = run(body(3));
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(
      report.headline.starts_with("replicas differ in check #151: rank 3 has a different \"w\" than ranks 0,2"));
}

TEST(Replicas, OfFewerRanks_AreReportedAsIncomplete) {
  const auto report = run([](RankContext& ctx) {
    for (int i = 0; i < (ctx.rank() == 1 ? 2 : 5); ++i) ctx.check_replicas({{"w", at::ones({1})}});
    if (ctx.rank() == 0) ctx.check_draws(checks::Draws::same);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("replicas"), 2u);
  EXPECT_EQ(report.remarks,
            (std::vector<std::string>{"check #1 of \"draws\" was not made: ranks 1-3 did not come",
                                      "3 checks of \"replicas\", #3 to #5, were not complete: rank 1 did not come, the "
                                      "others were compared"}));
}

TEST(Replicas, OfSomeRanks_AreTheirOwn) {
  const auto report = run([](RankContext& ctx) {
    const bool low = ctx.rank() < 2;
    const auto ranks = low ? std::vector{0, 1} : std::vector{2, 3};
    ctx.check_replicas({{"w", at::full({1}, low ? 1.0 : 2.0)}}, {.name = low ? "low" : "high", .ranks = ranks});
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("low"), 1u);
  EXPECT_EQ(report.checks.at("high"), 1u);
  const auto wrong = run([](RankContext& ctx) { ctx.check_replicas({{"w", at::ones({1})}}, {.ranks = {1, 7}}); });
  EXPECT_EQ(wrong.verdict, Verdict::rank_failed);
  EXPECT_NE(wrong.headline.find("CheckOptions::ranks"), std::string::npos);
}

TEST(Replicas, OfANamedCheck_HaveItsName) {
  const auto report = run([](RankContext& ctx) {
    ctx.check_replicas({{"w", at::full({1}, ctx.rank() == 0 ? 1.0 : 0.0)}}, {.name = "discriminator"});
  });
  EXPECT_TRUE(
      report.headline.starts_with("replicas of \"discriminator\" differ in check #1: rank 0 has a different \"w\""));
}

}  // namespace
}  // namespace checks_test
