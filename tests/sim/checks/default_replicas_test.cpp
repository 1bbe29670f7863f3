// SPDX-License-Identifier: BSD-3-Clause
// Contract: without any option, replicas that differ are a remark; they are a finding if the Reducer alone should have
// kept them equal.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "checked_world.h"

namespace checks_test {
namespace {

// One rank's training: a step computes with inputs that only this rank has.
struct Training {
  explicit Training(RankContext& of) : ctx(of), ddp(net, ctx.group()), optimizer(ddp.parameters(), 0.1) {}

  void step() {
    optimizer.zero_grad();
    ddp(at::ones({2, 3}) * (ctx.rank() + 1)).pow(2).mean().backward();
    optimizer.step();
  }

  RankContext& ctx;
  torch::nn::Linear net{3, 1};
  DistributedDataParallel<torch::nn::Linear> ddp;
  torch::optim::SGD optimizer;
};

bool has_remark(const Report& report) {
  return std::any_of(report.remarks.begin(), report.remarks.end(), [](const std::string& remark) {
    return remark.starts_with("replicas of \"DDP #1 on group \"world\"");
  });
}

WorldOptions with(CheckLevel level) {
  WorldOptions options;
  options.check_level = level;
  return options;
}

// Each rank lowers its learning rate by its own loss.
void train_with_own_rates(RankContext& ctx) {
  Training training(ctx);
  for (int i = 0; i < 3; ++i) {
    for (auto& group : training.optimizer.param_groups()) group.options().set_lr(0.1 / (ctx.rank() + 1));
    training.step();
  }
}

TEST(DefaultReplicas, ThatOnlyTheReducerChanged_AreAFinding) {
  const auto report = run(train_with_own_rates, 2);
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(report.headline.starts_with("replicas of \"DDP #1 on group \"world\"\" differ in check #2: "))
      << report.headline;
  EXPECT_TRUE(is_said(report, "first operation that differs: ")) << sim::to_text(report);
}

// Ranks move their parameters for one forward and move them back before the optimizer's step: by noise of their own, or
// along a gradient of their own data, which no DDP has reduced (sharpness-aware minimization).
void train_with_moved_parameters(RankContext& ctx, bool restores) {
  Training training(ctx);
  training.step();
  for (int i = 0; i < 3; ++i) {
    std::vector<at::Tensor> before;
    {
      const at::NoGradGuard no_grad;
      for (auto& parameter : training.net->parameters()) {
        before.push_back(parameter.clone());
        parameter.add_(0.01 * (ctx.rank() + 1));
      }
    }
    training.optimizer.zero_grad();
    training.ddp(at::ones({2, 3}) * (ctx.rank() + 1)).pow(2).mean().backward();
    const at::NoGradGuard no_grad;
    for (std::size_t j = 0; restores && j < before.size(); ++j) training.net->parameters()[j].copy_(before[j]);
    training.optimizer.step();
  }
}

TEST(DefaultReplicas, ThatDifferForOneForward_AreOk) {
  const auto report = run([](RankContext& ctx) { train_with_moved_parameters(ctx, true); }, 2);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(has_remark(report));
  const auto stays = run([](RankContext& ctx) { train_with_moved_parameters(ctx, false); }, 2);
  EXPECT_EQ(stays.verdict, Verdict::check_failed) << stays.headline;
  EXPECT_FALSE(has_remark(stays));
}

// The finding is that of the last forward after which they were never equal again.
TEST(DefaultReplicas, ThatWereEqualAgain_NameTheLaterDifference) {
  const auto report = run(
      [](RankContext& ctx) {
        Training training(ctx);
        for (int i = 0; i < 6; ++i) {
          const at::NoGradGuard no_grad;
          if (i == 1 || i == 4) training.net->weight.add_(0.01 * ctx.rank());
          if (i == 2) training.net->weight.fill_(1);
          const at::AutoGradMode grad(true);
          training.step();
        }
      },
      2);
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_THAT(report.headline, testing::HasSubstr("differ in check #5: "));
}

// Rank 0 evaluates through the DDP. Its broadcast of buffers meets that of the others' next forward, and its own next
// forward makes none.
TEST(DefaultReplicas, WhoseBuffersOneRankBroadcastEarlier_AreEqual) {
  for (const auto level : {CheckLevel::standard, CheckLevel::all}) {
    const auto report = run(with(level), [](RankContext& ctx) {
      torch::nn::BatchNorm1d net(3);
      DistributedDataParallel ddp(net, ctx.group());
      torch::optim::SGD optimizer(ddp.parameters(), 0.1);
      for (int step = 0; step < 4; ++step) {
        ddp.zero_grad();
        ddp(at::rand({4, 3})).pow(2).mean().backward();
        optimizer.step();
        if (ctx.rank() > 0 || step != 1) continue;
        const at::NoGradGuard no_grad;
        net->eval();
        ddp(at::ones({1, 3}));
        net->train();
      }
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_FALSE(has_remark(report));
    EXPECT_TRUE(report.remarks.empty()) << report.remarks.front();
  }
}

// One more forward of rank 0 pairs its later forwards with other steps of the other ranks. If the run ended early,
// ranks have merely come to different places, and nothing is said of them.
TEST(DefaultReplicas, OfRanksWithDifferentNumbersOfForwards_AreDoubted) {
  const auto body = [](bool ends) {
    return [ends](RankContext& ctx) {
      Training training(ctx);
      for (int i = 0; i < 4; ++i) {
        training.step();
        if (ctx.rank() == 0 && i == 1) training.ddp(at::ones({2, 3}));
      }
      if (!ends && ctx.rank() == 0) throw std::runtime_error("over");
    };
  };
  for (const bool ends : {true, false}) {
    const auto report = run(body(ends));
    EXPECT_EQ(report.verdict, ends ? Verdict::ok : Verdict::rank_failed) << report.headline;
    ASSERT_TRUE(has_remark(report));
    const auto doubted = std::count_if(report.remarks.begin(), report.remarks.end(), [](const std::string& remark) {
      return remark.find("ranks made different numbers of forwards") != std::string::npos;
    });
    EXPECT_EQ(doubted, ends ? 1 : 0);
  }
}

TEST(DefaultReplicas, WithoutChecks_AreNotCompared) {
  const auto report = run(with(CheckLevel::none), train_with_own_rates);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_FALSE(has_remark(report));
  auto off = with(CheckLevel::standard);
  off.checks.replicas = false;
  EXPECT_FALSE(has_remark(run(off, train_with_own_rates)));
}

// `spoils`: a rank puts other weights into its model after the last step, for example averages, while the DDP is still
// there.
Report train(bool spoils) {
  return run([spoils](RankContext& ctx) {
    Training training(ctx);
    for (int i = 0; i < 3; ++i) training.step();
    const at::NoGradGuard no_grad;
    if (spoils && ctx.rank() == 0) training.net->weight.mul_(0.5);
  });
}

TEST(DefaultReplicas, OfAGoodRun_AreSilentAndNotCounted) {
  const auto report = train(false);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(report.remarks.empty());
  EXPECT_TRUE(report.checks.empty());
}

TEST(DefaultReplicas, ThatDifferAfterTheLastStep_AreOk) {
  const auto report = train(true);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(has_remark(report));
}

// Local SGD: ranks train alone and average their parameters from time to time.
void train_locally(RankContext& ctx, bool average) {
  Training training(ctx);
  for (int round = 0; round < 2; ++round) {
    {
      const auto alone = training.ddp.no_sync();
      for (int i = 0; i < 2; ++i) training.step();
    }
    if (average) {
      const at::NoGradGuard no_grad;
      for (auto& parameter : training.net->parameters()) {
        ctx.group().allreduce(parameter)->wait();
        parameter.div_(ctx.size());
      }
    }
    training.step();
  }
}

TEST(DefaultReplicas, OfLocalSgdByNoSync_AreOk) {
  const auto averaged = run([](RankContext& ctx) { train_locally(ctx, true); });
  EXPECT_EQ(averaged.verdict, Verdict::ok) << averaged.headline;
  EXPECT_TRUE(averaged.remarks.empty());

  const auto apart = run([](RankContext& ctx) { train_locally(ctx, false); });
  EXPECT_EQ(apart.verdict, Verdict::ok) << apart.headline;
  EXPECT_EQ(apart.remarks.size(), 1u);
  EXPECT_TRUE(has_remark(apart));
}

class KeepsGradients final : public c10d::CommHookInterface {
 public:
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
    future->markCompleted(bucket.getBuffer());
    return future;
  }
  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }
};

TEST(DefaultReplicas, OfLocalSgdByAHook_AreOk) {
  const auto report = run([](RankContext& ctx) {
    Training training(ctx);
    training.ddp.register_comm_hook(std::make_unique<KeepsGradients>());
    for (int i = 0; i < 3; ++i) training.step();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.remarks.size(), 1u);
  EXPECT_TRUE(has_remark(report));
}

}  // namespace
}  // namespace checks_test
