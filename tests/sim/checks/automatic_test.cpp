// SPDX-License-Identifier: BSD-3-Clause
// Contract: automatic checks look at a DistributedDataParallel at each forward and when it is destroyed, and do not
// change a correct run.
#include <memory>
#include <stdexcept>

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "checked_world.h"

namespace checks_test {
namespace {

constexpr int kForwards = 4;

World::Body training(std::function<void(RankContext&, int, torch::nn::Sequential&)> spoil = {}) {
  return [spoil = std::move(spoil)](RankContext& ctx) {
    torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1));
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    for (int step = 1; step <= kForwards; ++step) {
      ddp.zero_grad();
      ddp(at::rand({4, 3}) + ctx.rank()).pow(2).mean().backward();
      optimizer.step();
      if (spoil) spoil(ctx, step, net);
    }
  };
}

WorldOptions checking(rehearse::checks::AutomaticChecks checks, int ranks = 4) {
  WorldOptions options;
  options.ranks = ranks;
  options.checks = checks;
  return options;
}

TEST(AutomaticChecks, OfAGoodRun_AreSilent_AndChangeNothing) {
  const auto checked =
      run(checking({.replicas = true, .finite = true, .draws = rehearse::checks::Draws::same}), training());
  const auto unchecked = run(checking({}), training());
  EXPECT_EQ(checked.verdict, Verdict::ok) << checked.headline;
  EXPECT_EQ(checked.identity, unchecked.identity);
  EXPECT_EQ(checked.checks.at("DDP #1 on group \"world\""), 2u * kForwards);
  EXPECT_EQ(checked.checks.at("DDP #1 on group \"world\" at its end"), 1u);
  EXPECT_TRUE(checked.remarks.empty());
  EXPECT_TRUE(unchecked.checks.empty());
}

TEST(AutomaticChecks, LevelAll_TurnsThemOn) {
  auto options = checking({});
  options.check_level = CheckLevel::all;
  const auto good = run(options, training());
  EXPECT_EQ(good.verdict, Verdict::ok) << good.headline;
  EXPECT_EQ(good.checks.at("DDP #1 on group \"world\" at its end"), 1u);
  const auto bad = run(options, [](RankContext& ctx) {
    auto root = at::ones({2}).neg().sqrt();
    ctx.group().allreduce(root)->wait();
  });
  EXPECT_NE(bad.headline.find(" takes NaN from rank "), std::string::npos) << bad.headline;
}

// In an epoch of uneven inputs, ranks make different numbers of forwards.
TEST(AutomaticChecks, AfterUnevenInputs_GoOnTogether) {
  auto options = checking({.replicas = true, .draws = rehearse::checks::Draws::same}, 3);
  const auto report = run(options, [](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    const auto step = [&] {
      ddp.zero_grad();
      ddp(at::ones({2, 3}) * (ctx.rank() + 1)).sum().backward();
      optimizer.step();
    };
    ddp.join([&] {
      for (int i = 0; i < 2 + ctx.rank(); ++i) step();
    });
    for (int i = 0; i < 2; ++i) step();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("DDP #1 on group \"world\""), 2u * 2);
}

// Ranks reach a check in every order, and some are a step ahead.
TEST(AutomaticChecks, OfAGoodRun_AreSilentUnderManySchedules) {
  auto options = checking({.replicas = true, .finite = true, .draws = rehearse::checks::Draws::same});
  options.preempt = true;
  options.network.jitter = 0.5;
  for (options.seed = 1; options.seed <= 50; ++options.seed) {
    const auto report = World(options).run(training([](RankContext& ctx, int, torch::nn::Sequential& net) {
      ctx.check_replicas(net, {.name = "after the step", .buffers = false});
      ctx.check_draws();
      ctx.check_finite(net);
    }));
    ASSERT_EQ(report.verdict, Verdict::ok) << options.seed << ": " << report.headline;
    ASSERT_EQ(report.checks.at("after the step"), static_cast<std::uint64_t>(kForwards));
  }
}

TEST(AutomaticChecks, AReplicaThatWasChanged_IsFoundAtTheNextForward) {
  const auto report = run(checking({.replicas = true}), training([](RankContext& ctx, int step, auto& net) {
                            const at::NoGradGuard no_grad;
                            if (ctx.rank() == 1 && step == 2) net->named_parameters()["2.bias"].add_(1);
                          }));
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(
      report.headline.starts_with("replicas of \"DDP #1 on group \"world\"\" differ in check #3: rank 1 has a "
                                  "different \"2.bias\" than ranks 0,2-3"))
      << report.headline;
  EXPECT_TRUE(is_said(report, "first operation that differs: ")) << sim::to_text(report);
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{1});
}

// No forward follows the change.
TEST(AutomaticChecks, WhatTheLastStepLeft_IsFoundAtTheEnd) {
  const auto report = run(checking({.replicas = true}), training([](RankContext& ctx, int step, auto& net) {
                            const at::NoGradGuard no_grad;
                            if (ctx.rank() == 1 && step == kForwards) net->named_parameters()["2.bias"].add_(1);
                          }));
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(
      report.headline.starts_with("replicas of \"DDP #1 on group \"world\" at its end\" differ in check #1: rank 1 has "
                                  "a different \"2.bias\" than ranks 0,2-3"))
      << report.headline;
  EXPECT_TRUE(is_said(report, "first operation that differs: ")) << sim::to_text(report);
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{1});
}

struct PartlyUsed : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return used(x); }

  torch::nn::Linear used = register_module("used", torch::nn::Linear(3, 1));
  torch::nn::Linear unused = register_module("unused", torch::nn::Linear(2, 2));
};

// If no rank fills a bucket, no rank reduces it. A later forward would report that, but here none follows.
TEST(AutomaticChecks, WhatTheLastStepLeftUnreduced_IsFoundWithItsCause) {
  const auto report = run(checking({.replicas = true}), [](RankContext& ctx) {
    DistributedDataParallel ddp(std::make_shared<PartlyUsed>(), ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    ddp(at::ones({4, 3}) * (ctx.rank() + 1)).pow(2).mean().backward();
    optimizer.step();
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(is_said(report, "first operation that differs: ")) << sim::to_text(report);
  ASSERT_EQ(report.remarks.size(), 1u) << sim::to_text(report);
  EXPECT_TRUE(report.remarks[0].starts_with(
      "ranks 0-3: no gradient came for parameters: unused.weight, unused.bias of DDP bucket 0 of 1"))
      << report.remarks[0];
}

// If an exception destroys a rank's model, the rank may not have made the last step of the other ranks.
TEST(AutomaticChecks, OfARankThatUnwinds_LooksAtNoEnd) {
  const auto report = run(checking({.replicas = true}), [](RankContext& ctx) {
    try {
      training([](RankContext& each, int step, auto& net) {
        const at::NoGradGuard no_grad;
        if (each.rank() != 1 || step != kForwards) return;
        net->named_parameters()["2.bias"].add_(1);
        throw std::runtime_error("enough");
      })(ctx);
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_FALSE(report.checks.contains("DDP #1 on group \"world\" at its end"));
}

TEST(AutomaticChecks, OfAModelThatWasNotTrained_LooksAtNoEnd) {
  const auto report = run(checking({.replicas = true}), [](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel ddp(net, ctx.group());
    const at::NoGradGuard no_grad;
    ddp(at::ones({4, 3}));
    net->bias.add_(ctx.rank());
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(report.checks.empty());
}

// Each rank makes a step by itself, with a module whose DistributedDataParallel is never called.
World::Body training_alone(DistributedDataParallelOptions options, bool alike = false) {
  return [options, alike](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel ddp(net, ctx.group(), options);
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    net(at::ones({4, 3}) * (alike ? 1 : ctx.rank() + 1)).mean().backward();
    optimizer.step();
  };
}

// The constructor made the replicas equal, but no forward would compare them.
TEST(AutomaticChecks, OfAModelThatWasNeverCalled_LookAtItsEnd) {
  const auto report = run(checking({.replicas = true}, 2), training_alone({}));
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_TRUE(
      report.headline.starts_with("replicas of \"DDP #1 on group \"world\" at its end\" differ in check #1: "
                                  "ranks 0-1 have 2 different \"weight\""))
      << report.headline;
  EXPECT_TRUE(is_said(report, "first operation that differs: aten::add_ on \"weight\"")) << sim::to_text(report);
  ASSERT_EQ(report.remarks.size(), 1u) << sim::to_text(report);
  EXPECT_TRUE(report.remarks[0].starts_with("ranks 0-1: DDP #1 on group \"world\" was never called"))
      << report.remarks[0];
}

TEST(AutomaticChecks, OfAModelThatWasNeverCalled_AreSilentWhereReplicasAreEqual) {
  const auto report = run(checking({.replicas = true}, 2), training_alone({}, true));
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("DDP #1 on group \"world\" at its end"), 1u);
}

// Nothing has made the replicas equal.
TEST(AutomaticChecks, OfAModelThatWasNeverCalledNorSynchronized_LookAtNoEnd) {
  const auto report = run(checking({.replicas = true}, 2), training_alone({.init_sync = false}));
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(report.checks.empty());
}

// A rank without any inputs makes no forward, and gets the others' parameters in the end.
TEST(AutomaticChecks, OfARankWithoutInputs_AreSilent) {
  const auto report = run(checking({.replicas = true}, 2), [](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    ddp.join([&] {
      if (ctx.rank() == 0) return;
      ddp(at::ones({4, 3})).mean().backward();
      optimizer.step();
    });
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("DDP #1 on group \"world\" at its end"), 1u);
}

TEST(AutomaticChecks, DrawsOfOneRank_AreFoundAtTheNextForward) {
  const auto report =
      run(checking({.draws = rehearse::checks::Draws::same}), training([](RankContext& ctx, int step, auto&) {
            if (ctx.rank() == 1 && step == 2) at::rand({5});
          }));
  EXPECT_EQ(report.headline,
            "the random generators of ranks differ in check #3 of \"DDP #1 on group \"world\"\": rank 1 has drawn 5 "
            "numbers more than ranks 0,2-3");
}

// A typical mistake: the loop calls the module instead of the DistributedDataParallel.
TEST(DdpThatIsNeverCalled, IsRemarkedWhereItsModuleWasTrained) {
  const auto train = [](int what) {
    return run([what](RankContext& ctx) {
      torch::nn::Linear net(3, 1);
      DistributedDataParallel ddp(net, ctx.group());
      torch::optim::SGD optimizer(ddp.parameters(), 0.1);
      if (what == 0) return;
      const auto x = at::ones({4, 3}) * (ctx.rank() + 1);
      (what == 1 ? net(x) : ddp(x)).pow(2).mean().backward();
      optimizer.step();
    });
  };
  EXPECT_TRUE(train(0).remarks.empty());
  EXPECT_TRUE(train(2).remarks.empty());
  const auto report = train(1);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_TRUE(
      report.remarks[0].starts_with("ranks 0-3: DDP #1 on group \"world\" was never called, but its module has "
                                    "gradients, so DDP did not reduce them."))
      << report.remarks[0];
}

// Each rank trains its module without a reduction: beside a DDP that only evaluates, or in no_sync().
TEST(DdpThatNeverReduces, IsFoundAtItsEndAndRemarked) {
  struct Case {
    bool evaluates;
    const char* told;
  };
  for (const auto [evaluates, told] :
       {Case{true, "was called with grad mode off only"}, Case{false, "was called in no_sync() only"}}) {
    const auto train = [evaluates](RankContext& ctx) {
      torch::nn::Linear net(3, 1);
      DistributedDataParallel ddp(net, ctx.group());
      torch::optim::SGD optimizer(ddp.parameters(), 0.1);
      const auto x = at::ones({4, 3}) * (ctx.rank() + 1);
      if (evaluates) {
        const at::NoGradGuard no_grad;
        ddp(x);
      }
      const auto guard = ddp.no_sync();
      (evaluates ? net(x) : ddp(x)).pow(2).mean().backward();
      optimizer.step();
    };
    const auto report = run(train);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    ASSERT_EQ(report.remarks.size(), 1u) << told;
    EXPECT_TRUE(report.remarks[0].starts_with(std::string("ranks 0-3: DDP #1 on group \"world\" ") + told +
                                              ", but its module has gradients, so DDP did not reduce them."))
        << report.remarks[0];
    const auto checked = run(checking({.replicas = true}), train);
    EXPECT_EQ(checked.verdict, Verdict::check_failed) << told;
    EXPECT_TRUE(run(checking({}, 1), train).remarks.empty()) << told;  // a single rank has nothing to reduce
  }
}

// Groups may share a name, at the same time and one after the other. Each group has checks of its own.
World::Body training_in_pairs(std::function<void(RankContext&, torch::nn::Linear&)> spoil = {}) {
  return [spoil = std::move(spoil)](RankContext& ctx) {
    for (int round = 0; round < 2; ++round) {
      const auto pair = ctx.new_local_group(ctx.rank() < 2 ? std::vector{0, 1} : std::vector{2, 3}, "pair");
      torch::nn::Linear net(3, 1);
      DistributedDataParallel ddp(net, pair);
      torch::optim::SGD optimizer(ddp.parameters(), ctx.rank() < 2 ? 0.1 : 0.2);
      for (int step = 0; step < 3; ++step) {
        ddp.zero_grad();
        ddp(at::ones({4, 3}) * (ctx.rank() + 1)).pow(2).mean().backward();
        optimizer.step();
        if (spoil && round == 1 && step == 1) spoil(ctx, net);
      }
    }
  };
}

TEST(AutomaticChecks, OfSeveralGroupsOfOneName_AreEachTheirOwn) {
  const auto checks = rehearse::checks::AutomaticChecks{.replicas = true, .draws = rehearse::checks::Draws::same};
  const auto good = run(checking(checks), training_in_pairs());
  EXPECT_EQ(good.verdict, Verdict::ok) << good.headline;

  const auto bad = run(checking(checks), training_in_pairs([](RankContext& ctx, torch::nn::Linear& net) {
                         const at::NoGradGuard no_grad;
                         if (ctx.rank() == 3) net->bias.add_(1);
                       }));
  EXPECT_EQ(bad.verdict, Verdict::check_failed);
  EXPECT_TRUE(bad.headline.find("rank 3 has a different \"bias\" than rank 2") != std::string::npos ||
              bad.headline.find("ranks 2-3 have 2 different \"bias\"") != std::string::npos)
      << bad.headline;
}

TEST(AutomaticChecks, OfUnevenInputs_AreSilent) {
  const auto report = run(checking({.replicas = true}), [](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    ddp.join([&] {
      for (int step = 0; step < 2 + ctx.rank(); ++step) {
        ddp.zero_grad();
        ddp(at::ones({4, 3})).mean().backward();
        optimizer.step();
      }
    });
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("DDP #1 on group \"world\" at its end"), 1u);
  EXPECT_TRUE(report.remarks.empty());
}

TEST(AutomaticChecks, OfTwoModelsAndAccumulation_AreSilent) {
  const auto report = run(checking({.replicas = true, .finite = true}), [](RankContext& ctx) {
    torch::nn::Linear one(3, 1), other(3, 1);
    DistributedDataParallel first(one, ctx.group()), second(other, ctx.group());
    torch::optim::SGD optimizer(first.parameters(), 0.1), another(second.parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      {
        const auto guard = first.no_sync();
        first(at::ones({4, 3}) * ctx.rank()).mean().backward();
      }
      first(at::ones({4, 3}) * ctx.rank()).mean().backward();
      second(at::ones({4, 3}) * ctx.rank()).mean().backward();
      optimizer.step();
      another.step();
      first.zero_grad();
      second.zero_grad();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("DDP #1 on group \"world\""), 3u);
  EXPECT_EQ(report.checks.at("DDP #2 on group \"world\""), 3u);
}

}  // namespace
}  // namespace checks_test
