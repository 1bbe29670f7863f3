// SPDX-License-Identifier: BSD-3-Clause
// Contract: the check compares gradients with those of one process. From their ratio, the report concludes what the
// mistake is.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "checked_world.h"

namespace checks_test {
namespace {

using rehearse::test::BitEqual;

at::Tensor batch_of(int rank) { return at::arange(12, at::kDouble).view({4, 3}).sin() * (rank + 1); }

struct Net {
  Net() : linear(3, 2) { linear->to(at::kDouble); }
  at::Tensor loss(int rank) { return linear(batch_of(rank)).pow(2).mean(); }
  at::Tensor loss_of_all(int ranks) {
    at::Tensor sum;
    for (int rank = 0; rank < ranks; ++rank) sum = sum.defined() ? sum + loss(rank) : loss(rank);
    return sum / ranks;
  }
  torch::nn::Linear linear;
};

Report with(const std::function<void(RankContext&, Net&)>& backward, int ranks = 4) {
  return run(
      [&](RankContext& ctx) {
        Net net;
        backward(ctx, net);
        ctx.check_gradients(net.linear, [&] { return net.loss_of_all(ctx.size()); });
      },
      ranks);
}

void reduce(RankContext& ctx, Net& net, double factor) {
  net.loss(ctx.rank()).backward();
  for (const auto& parameter : net.linear->parameters()) {
    ctx.group().allreduce(parameter.grad())->wait();
    parameter.grad().mul_(factor);
  }
}

std::string headline(const std::string& what) {
  return "gradients differ from those of one process in check #1: all 2 gradients are " + what;
}

TEST(Gradients, OfDdp_AreThoseOfOneProcess) {
  const auto report = run([](RankContext& ctx) {
    Net net;
    DistributedDataParallel ddp(net.linear, ctx.group());
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      ddp(batch_of(ctx.rank())).pow(2).mean().backward();
      ctx.check_gradients(ddp, [&] { return net.loss_of_all(ctx.size()); });
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("gradients"), 3u);
}

TEST(Gradients, AMeanByHand_IsRight) {
  EXPECT_EQ(with([](RankContext& ctx, Net& net) { reduce(ctx, net, 0.25); }).verdict, Verdict::ok);
}

TEST(Gradients, ASum_IsNTimes) {
  const auto report = with([](RankContext& ctx, Net& net) { reduce(ctx, net, 1); });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.headline,
            headline("4 times as large (= number of ranks): a sum over the ranks where the mean is meant"));
}

// The batch has as many samples as there are ranks, so a factor of 4 may come from the batch or from the ranks. An
// all-reduce that takes the mean shows that the factor is not a sum over the ranks.
TEST(Gradients, ASumOverTheBatch_IsDistinguishedFromASumOverTheRanks) {
  const auto said = [](const char* takes_the_mean) {
    return headline(std::string("4 times as large (= number of ranks), although ") + takes_the_mean +
                    ": each rank's loss is a sum over a batch of 4 where the mean is meant, or is multiplied by the "
                    "number of ranks");
  };
  const auto sum_of_batch = [](RankContext& ctx, const auto& model) {
    return model(batch_of(ctx.rank())).pow(2).mean(1).sum();
  };
  const auto by_ddp = with([&](RankContext& ctx, Net& net) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    sum_of_batch(ctx, [&](const at::Tensor& x) { return ddp(x); }).backward();
  });
  EXPECT_EQ(by_ddp.headline, said("DDP takes the mean, unless a communication hook of the program sums"));
  const auto by_hand = with([&](RankContext& ctx, Net& net) {
    sum_of_batch(ctx, [&](const at::Tensor& x) { return net.linear(x); }).backward();
    for (const auto& parameter : net.linear->parameters())
      ctx.group().allreduce(parameter.grad(), c10d::ReduceOp::AVG)->wait();
  });
  EXPECT_EQ(by_hand.headline, said("the reduction takes the mean"));
}

// A model whose bias has one element. Any two gradients of one element are multiples of each other.
Report with_one_bias(double weight_factor, double bias_factor) {
  return run([=](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    net->to(at::kDouble);
    const auto loss = [&](int rank) { return net(batch_of(rank)).pow(2).mean(); };
    loss(ctx.rank()).backward();
    for (const auto& parameter : net->parameters())
      ctx.group().allreduce(parameter.grad(), c10d::ReduceOp::AVG)->wait();
    net->weight.mutable_grad().mul_(weight_factor);
    net->bias.mutable_grad().mul_(bias_factor);
    ctx.check_gradients(net, [&] { return (loss(0) + loss(1) + loss(2) + loss(3)) / 4; });
  });
}

TEST(Gradients, OfOneElement_TellWhyOnlyWithLargerOnes) {
  EXPECT_EQ(with_one_bias(3, 3).headline,
            headline("3 times as large: added up 3 times, or a sum over a batch of 3 where the mean is meant"));
  EXPECT_TRUE(with_one_bias(1, 3).headline.ends_with(
      "the gradient of \"bias\" is 3 times as large: a single element does not tell why"));
  EXPECT_TRUE(with_one_bias(3, 4).headline.find("the gradient of \"bias\" is 4 times as large: a single element") !=
                  std::string::npos ||
              is_said(with_one_bias(3, 4), "the gradient of \"bias\" is 4 times as large: a single element"));
  const auto of_other_data = run([](RankContext& ctx) {
    torch::nn::Linear net(3, 1);
    net->to(at::kDouble);
    net(at::ones({2, 3}, at::kDouble)).pow(2).mean().backward();
    ctx.check_gradients(net, [&] { return net(batch_of(0)).pow(2).mean(); });
  });
  EXPECT_EQ(
      of_other_data.headline,
      headline("no multiple of what one process computes: it comes from other data, or was reduced in another way"));
}

// One rank alone runs the function that check_gradients() gets.
TEST(Gradients, FunctionThatCallsACollective_IsRefusedByName) {
  const auto report = run([](RankContext& ctx) {
    Net net;
    reduce(ctx, net, 0.25);
    ctx.check_gradients(net.linear, [&] {
      auto loss = net.loss(ctx.rank());
      ctx.group().allreduce(loss.detach())->wait();
      return loss;
    });
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_NE(report.headline.find("the function given to RankContext::check_gradients() calls allreduce on group "
                                 "\"world\": one rank alone runs it"),
            std::string::npos)
      << report.headline;
}

TEST(Gradients, AMeanOfAMean_IsOneNth) {
  const auto report = with([](RankContext& ctx, Net& net) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    (ddp(batch_of(ctx.rank())).pow(2).mean() / ctx.size()).backward();
  });
  EXPECT_EQ(report.headline, headline("0.25 times as large (= 1 / number of ranks): averaged twice (a loss divided by "
                                      "the number of ranks, and a reduction that divides, too)"));
}

TEST(Gradients, WithoutZeroGrad_AreTwice) {
  const auto report = with([](RankContext& ctx, Net& net) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    for (int i = 0; i < 2; ++i) ddp(batch_of(ctx.rank())).pow(2).mean().backward();
  });
  EXPECT_EQ(report.headline, headline("2 times as large: counted twice (reduced twice, a second backward, or no "
                                      "zero_grad), or a sum over a batch of 2 where the mean is meant"));
}

// Rank 1 has three times as many rows as any other rank.
at::Tensor rows_of(int rank) { return at::arange(rank == 1 ? 36 : 12, at::kDouble).view({-1, 3}).sin() * (rank + 1); }

Report with_rows_of_their_own(const std::function<void(RankContext&, Net&, const at::Tensor& rows)>& backward) {
  return run([&](RankContext& ctx) {
    Net net;
    backward(ctx, net, rows_of(ctx.rank()));
    ctx.check_gradients(net.linear, [&] {
      std::vector<at::Tensor> all;
      for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rows_of(rank));
      return net.linear(at::cat(all)).pow(2).mean();
    });
  });
}

TEST(Gradients, AMeanOfMeansOfUnevenParts_SaysWhatEachShouldWeigh) {
  const auto report = with_rows_of_their_own([](RankContext& ctx, Net& net, const at::Tensor& rows) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    ddp(rows).pow(2).mean().backward();
  });
  EXPECT_EQ(report.headline, headline("no multiple of what one process computes: ranks have parts of different sizes "
                                      "(0.167 of all on ranks 0,2-3, 0.5 on rank 1), and each part counts for 0.25"));
  EXPECT_TRUE(
      is_said(report, "it would be right with each rank's part multiplied by 0.667 on ranks 0,2-3, 2 on rank 1: "));
}

// Each rank multiplies its loss by the factor that the report in the previous test names.
TEST(Gradients, UnevenPartsByTheirSizes_AreRight) {
  const auto report = with_rows_of_their_own([](RankContext& ctx, Net& net, const at::Tensor& rows) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    (ddp(rows).pow(2).mean() * (ctx.rank() == 1 ? 2.0 : 2.0 / 3)).backward();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("gradients"), 1u);
}

TEST(Gradients, OfOtherData_AreNoPartsOfIt) {
  const auto report = with_rows_of_their_own([](RankContext& ctx, Net& net, const at::Tensor& rows) {
    DistributedDataParallel ddp(net.linear, ctx.group());
    ddp((rows + 1).cos()).pow(2).mean().backward();
  });
  EXPECT_EQ(
      report.headline,
      headline("no multiple of what one process computes: it comes from other data, or was reduced in another way"));
}

TEST(Gradients, ReducedTwice_NamesBothCalls) {
  const auto report = with([](RankContext& ctx, Net& net) {
    for (int i = 0; i < 2; ++i) reduce(ctx, net, 0.25);
  });
  EXPECT_TRUE(is_said(
      report, "the gradient of \"weight\" was reduced 2 times: allreduce #1 on group \"world\" at gradients_test.cpp:"))
      << sim::to_text(report);
}

// A row that differs between ranks does not hide the cause of another.
TEST(Gradients, ReducedTwiceBesideOneThatDiffers_NamesBothCalls) {
  const auto report = with([](RankContext& ctx, Net& net) {
    reduce(ctx, net, 0.25);
    auto weight = net.linear->weight.grad();
    ctx.group().allreduce(weight)->wait();
    net.linear->bias.mutable_grad().add_(ctx.rank());
  });
  EXPECT_TRUE(is_said(report, "the gradient of \"weight\" was reduced 2 times: ")) << sim::to_text(report);
}

TEST(Gradients, OfWhichEachRankHasAnotherWrong_AreNamedOneByOne) {
  const auto report = with([](RankContext& ctx, Net& net) {
    reduce(ctx, net, 0.25);
    if (ctx.rank() == 1) net.linear->weight.mutable_grad().mul_(2);
    if (ctx.rank() == 2) net.linear->bias.mutable_grad().mul_(3);
  });
  EXPECT_EQ(report.findings.at(0).ranks, (std::vector{1, 2}));
  const auto all = sim::to_text(report);
  EXPECT_THAT(report.headline, testing::HasSubstr("right on ranks 0,2-3, but those of rank 1 are 2 times as large"));
  EXPECT_THAT(all, testing::HasSubstr("right on ranks 0-1,3, but those of rank 2 are 3 times as large"));
}

TEST(Gradients, OfARanksOwnData_AreNotReduced) {
  const auto report = with([](RankContext& ctx, Net& net) { net.loss(ctx.rank()).backward(); });
  EXPECT_EQ(report.headline,
            headline("not reduced, or only in part: each rank has a part of its own (the mean of all would be right)"));
}

TEST(Gradients, OneParameterLeftOut_IsNamed) {
  const auto report = with([](RankContext& ctx, Net& net) {
    net.loss(ctx.rank()).backward();
    auto gradient = net.linear->weight.grad();
    ctx.group().allreduce(gradient)->wait();
    gradient.div_(ctx.size());
  });
  EXPECT_EQ(report.headline,
            "gradients differ from those of one process in check #1: the gradient of \"bias\" is not reduced, or "
            "only in part: each rank has a part of its own (the mean of all would be right)");
}

TEST(Gradients, OfOneRankThatKeepsItsOwn_AreNamed) {
  const auto report = with([](RankContext& ctx, Net& net) {
    net.loss(ctx.rank()).backward();
    for (const auto& parameter : net.linear->parameters()) {
      auto mean = parameter.grad().clone();
      ctx.group().allreduce(mean)->wait();
      if (ctx.rank() != 3) parameter.mutable_grad() = mean / ctx.size();
    }
  });
  EXPECT_EQ(report.headline,
            headline("right on ranks 0-2, but those of rank 3 are no multiple of what one process computes"));
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{3});
  EXPECT_TRUE(
      is_said(report, "of the gradients rank 3 has a different \"weight\" than ranks 0-2 (6 of 6 elements, by up to "));
}

TEST(Gradients, OfARankThatNeverComes_AreReportedAsNotCompared) {
  const auto checks = [](int of_rank_3) {
    return run([=](RankContext& ctx) {
      Net net;
      for (int step = 0; step < 5; ++step) {
        net.linear->zero_grad();
        reduce(ctx, net, 0.25);
        if (ctx.rank() == 3 && step >= of_rank_3) continue;
        ctx.check_gradients(net.linear, [&] { return net.loss_of_all(ctx.size()); });
      }
    });
  };
  const auto one = checks(4);
  EXPECT_EQ(one.verdict, Verdict::ok) << one.headline;
  EXPECT_EQ(one.checks.at("gradients"), 4u);
  EXPECT_EQ(one.remarks, std::vector<std::string>{"check #5 of \"gradients\" was not made: rank 3 did not come"});
  const auto four = checks(1);
  EXPECT_EQ(four.checks.at("gradients"), 1u);
  EXPECT_EQ(four.remarks,
            std::vector<std::string>{"4 checks of \"gradients\", #2 to #5, were not made: rank 3 did not come"});
  EXPECT_TRUE(checks(5).remarks.empty());
}

// The check keeps only a limited number of comparisons open for late ranks.
TEST(Gradients, DroppedComparisons_AreReportedToo) {
  const auto report = run([](RankContext& ctx) {
    Net net;
    reduce(ctx, net, 0.25);
    for (int check = 0; check < 100 && ctx.rank() == 0; ++check)
      ctx.check_gradients(net.linear, [&] { return net.loss_of_all(ctx.size()); });
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.remarks,
            (std::vector<std::string>{
                "64 checks of \"gradients\", #37 to #100, were not made: ranks 1-3 did not come",
                "36 checks of \"gradients\", #1 to #36, were not made: ranks 1-3 had not come 64 checks "
                "later"}));
}

TEST(Gradients, ThatAreMissing_AreNamed) {
  const auto report = with([](RankContext&, Net&) {});
  EXPECT_EQ(
      report.headline,
      headline(
          "zero or missing: no backward reached the parameter, the gradient was cleared, or it was never reduced"));
}

TEST(Gradients, TheReferenceLeavesNothingBehind) {
  const auto body = [](bool checks) {
    return [=](RankContext& ctx) {
      torch::nn::BatchNorm1d net(3);
      net->to(at::kDouble);
      const auto loss = [&] { return at::dropout(net(batch_of(0)), 0.5, true).pow(2).mean(); };
      loss().backward();
      const auto state = ctx.generator().get_state();
      const auto mean = net->running_mean.clone(), gradient = net->weight.grad().clone();
      if (checks) ctx.check_gradients(net, [&] { return loss() * 0 + (net->weight * gradient).sum(); });
      EXPECT_THAT(ctx.generator().get_state(), BitEqual(state));
      EXPECT_THAT(net->running_mean, BitEqual(mean));
      EXPECT_THAT(net->weight.grad(), BitEqual(gradient));
      ctx.group().barrier()->wait();
    };
  };
  WorldOptions options;
  options.compute = {.per_operator = std::chrono::microseconds(3)};
  options.explain_failures = false;
  const auto checked = run(options, body(true)), unchecked = run(options, body(false));
  EXPECT_EQ(checked.verdict, Verdict::check_failed);  // the function leaves out the bias
  EXPECT_EQ(unchecked.verdict, Verdict::ok);
}

TEST(Gradients, OfSomethingThatIsNoLoss_IsTheRanksFailure) {
  const auto report = run([](RankContext& ctx) {
    torch::nn::Linear net(2, 2);
    ctx.check_gradients(net, [] { return at::ones({1}); });
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_NE(report.headline.find("check_gradients() was given a function whose result is no loss"), std::string::npos);
}

}  // namespace
}  // namespace checks_test
