// SPDX-License-Identifier: BSD-3-Clause
// Contract: the check traces a NaN or an Inf through collectives and receives to its origin. The origin is the operator
// that made it, or the collective that made it from finite inputs. The check is silent about finite programs, and about
// masks of -inf.
#include <limits>
#include <optional>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "checked_world.h"

namespace checks_test {
namespace {

using rehearse::test::BitEqual;

WorldOptions watched(int ranks = 4) {
  WorldOptions options;
  options.ranks = ranks;
  options.checks.finite = true;
  return options;
}

TEST(Finite, ATensorThatIsNot_IsTraced) {
  const auto report = run([](RankContext& ctx) {
    const auto value = at::log(at::full({3}, ctx.rank() == 1 ? -1.0 : 1.0));
    ctx.check_finite({{"w", value + 1}});
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_EQ(report.headline, "\"w\" of rank 1 is not finite in check #1: NaN in 3 of 3 elements, first at [0]");
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{1});
  EXPECT_TRUE(is_said(report, "the NaN was made by aten::log on rank 1 at finite_test.cpp:")) << sim::to_text(report);
}

TEST(Finite, AGradient_IsTracedToItsBackward) {
  const auto report = run([](RankContext& ctx) {
    auto weight = at::zeros({2}).requires_grad_();
    at::sqrt(weight).sum().backward();
    ctx.check_finite({{"w", weight}});
  });
  EXPECT_TRUE(report.headline.starts_with("the gradient of \"w\" of rank ")) << report.headline;
  ASSERT_FALSE(details_of(report).empty());
  EXPECT_NE(details_of(report)[0].find("in the backward of SqrtBackward0"), std::string::npos) << details_of(report)[0];
}

TEST(Finite, WhatARankBringsIntoASum_IsTraced) {
  const auto report = run(watched(), [](RankContext& ctx) {
    for (int step = 0; step < 3; ++step) {
      const auto label = ctx.label("head");
      auto value = at::log(at::full({2}, ctx.rank() == 2 && step == 1 ? -1.0 : 1.0)) * 2;
      ctx.group().allreduce(value)->wait();
    }
  });
  EXPECT_TRUE(
      report.headline.starts_with("allreduce #2 on group \"world\" (head) takes NaN from rank 2, made by aten::log "
                                  "on rank 2 at finite_test.cpp:"))
      << report.headline;
  EXPECT_TRUE(report.headline.ends_with(", under label \"head\"")) << report.headline;
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{2});
}

// The line that made the NaN comes only from the run that explains the failure.
TEST(Finite, WithoutExplanation_TheSumIsNamed) {
  auto options = watched();
  options.explain_failures = false;
  const auto report = run(options, [](RankContext& ctx) {
    auto value = at::log(at::full({2}, ctx.rank() == 2 ? -1.0 : 1.0));
    ctx.group().allreduce(value)->wait();
  });
  EXPECT_EQ(report.headline, "allreduce #1 on group \"world\" takes NaN from rank 2");
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{2});
}

// Gloo loses rank 2's NaN, so the result is finite on every rank.
TEST(Finite, ANanInAMaximum_IsAFindingAlthoughItMayBeLost) {
  const auto body = [](RankContext& ctx) {
    auto value = at::log(at::full({1}, ctx.rank() == 2 ? -1.0 : 1.0));
    ctx.group().allreduce(value, c10d::ReduceOp::MAX)->wait();
    if (value.isnan().item<bool>()) throw std::runtime_error("a rank's loss is NaN");
  };
  EXPECT_EQ(run(body).verdict, Verdict::ok);
  const auto report = run(watched(), body);
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_TRUE(
      report.headline.starts_with("allreduce #1 on group \"world\" takes NaN from rank 2 into a max, which may "
                                  "lose it, made by aten::log on rank 2 at finite_test.cpp:"))
      << report.headline;
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{2});
  EXPECT_TRUE(is_said(report, "rank 2 brings NaN in 1 of 1 element, first at [0]")) << sim::to_text(report);
  EXPECT_TRUE(is_said(report, "whether Gloo keeps or loses a NaN in a max depends on the order of the ranks"))
      << sim::to_text(report);
}

TEST(Finite, ANanInAMinimum_IsFoundBehindAnInf) {
  auto options = watched();
  options.explain_failures = false;
  const auto report = run(options, [](RankContext& ctx) {
    auto least = at::full({3}, std::numeric_limits<double>::infinity());
    if (ctx.rank() == 1) least[2].fill_(std::numeric_limits<double>::quiet_NaN());
    ctx.group().reduce(least, 0, c10d::ReduceOp::MIN)->wait();
  });
  EXPECT_EQ(report.headline, "reduce #1 on group \"world\" takes NaN from rank 1 into a min, which may lose it");
  EXPECT_TRUE(is_said(report, "rank 1 brings NaN in 1 of 3 elements, first at [2]")) << sim::to_text(report);
}

TEST(Finite, WhatACollectiveMakes_IsItsOwn) {
  auto options = watched();
  options.faults = {parse_fault("corrupt rank=1 at=allreduce#2 with=nan")};
  const auto report = run(options, [](RankContext& ctx) {
    for (int step = 0; step < 3; ++step) {
      auto value = at::ones({2});
      ctx.group().allreduce(value)->wait();
    }
  });
  EXPECT_EQ(report.headline,
            "allreduce #2 on group \"world\" brings NaN to rank 1, and all that went into it is finite");
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{1});
}

TEST(Finite, ASumThatOverflows_IsTheCollectives) {
  const auto report = run(watched(2), [](RankContext& ctx) {
    auto value = at::full({2}, std::numeric_limits<float>::max());
    ctx.group().allreduce(value)->wait();
  });
  EXPECT_TRUE(
      report.headline.starts_with("allreduce #1 on group \"world\" brings Inf to rank 0, and all that went into "
                                  "it is finite"))
      << report.headline;
}

TEST(Finite, ThroughABroadcast_ThePathIsReported) {
  const auto report = run([](RankContext& ctx) {
    auto value = ctx.rank() == 0 ? at::log(at::full({2}, -1.0)) : at::zeros({2});
    ctx.group().broadcast(value)->wait();
    if (ctx.rank() == 2) ctx.check_finite({{"w", value * 3}});
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.headline, "\"w\" of rank 2 is not finite in check #1: NaN in 2 of 2 elements, first at [0]");
  ASSERT_FALSE(details_of(report).empty());
  EXPECT_TRUE(details_of(report)[0].starts_with("the NaN was made by aten::log on rank 0")) << details_of(report)[0];
  EXPECT_TRUE(details_of(report)[0].ends_with(", brought by broadcast #1 on group \"world\" to rank 2"))
      << details_of(report)[0];
}

TEST(Finite, ANanOfAnInf_NamesBoth) {
  const auto report = run([](RankContext& ctx) {
    const auto infinite = at::log(at::zeros({2}));
    ctx.check_finite({{"w", infinite - infinite}});
  });
  ASSERT_FALSE(details_of(report).empty());
  EXPECT_TRUE(details_of(report)[0].starts_with("the NaN was made by aten::sub on rank ")) << details_of(report)[0];
  EXPECT_NE(details_of(report)[0].find("of the Inf made by aten::log on rank "), std::string::npos);
}

TEST(Finite, MasksAndEmptyMemory_AreNoFindings) {
  const auto body = [](RankContext& ctx) {
    auto scores = at::zeros({3, 3});
    scores = scores.masked_fill(at::ones({3, 3}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
    auto weights = at::softmax(scores, 1);
    ctx.group().allreduce(weights)->wait();
    auto buffer = at::empty({1000});
    buffer.fill_(1);
    ctx.group().allreduce(buffer)->wait();
    auto least = at::full({2}, std::numeric_limits<double>::infinity());
    ctx.group().allreduce(least, c10d::ReduceOp::MIN)->wait();
  };
  const auto report = run(watched(), body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  const auto with_nan = run(watched(), [&](RankContext& ctx) {
    body(ctx);
    auto value = at::log(at::full({2}, -1.0));
    ctx.group().allreduce(value)->wait();
  });
  EXPECT_TRUE(with_nan.headline.starts_with("allreduce #4 on group \"world\" takes NaN from rank "))
      << with_nan.headline;
}

at::Tensor trained_weight(RankContext& ctx) {
  torch::nn::Linear net(3, 2);
  DistributedDataParallel ddp(net, ctx.group());
  torch::optim::SGD optimizer(ddp.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 4; ++step) {
    ddp.zero_grad();
    ddp(at::ones({4, 3}) * (ctx.rank() + step)).pow(2).mean().backward();
    optimizer.step();
  }
  return net->weight.detach().clone();
}

// A mask of -inf in a buffer is no finding, unless the check asks for buffers.
TEST(Finite, ABufferOfInf_IsAFindingWhereItIsAskedFor) {
  const auto with = [](double value, std::optional<bool> buffers) {
    return run([=](RankContext& ctx) {
      torch::nn::Linear net(2, 2);
      net->register_buffer("mask", at::full({2}, value));
      ctx.check_finite(net, {.buffers = buffers});
    });
  };
  constexpr auto kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with(-kInf, std::nullopt).verdict, Verdict::ok);
  EXPECT_EQ(with(-kInf, false).verdict, Verdict::ok);
  const auto asked = with(-kInf, true);
  EXPECT_TRUE(asked.headline.starts_with("\"mask\" of rank ")) << asked.headline;
  const auto nan = with(std::numeric_limits<double>::quiet_NaN(), std::nullopt);
  EXPECT_NE(nan.headline.find("NaN in 2 of 2 elements"), std::string::npos) << nan.headline;
  EXPECT_EQ(with(std::numeric_limits<double>::quiet_NaN(), false).verdict, Verdict::ok);
}

TEST(Finite, WatchingChangesNothing) {
  std::vector<at::Tensor> with, without;
  WorldOptions options = watched();
  options.checks.explain = true;
  options.compute = {.per_operator = std::chrono::microseconds(3)};
  const auto seen = World(options).run([&](RankContext& ctx) { with.push_back(trained_weight(ctx)); });
  options.checks = {};
  const auto unseen = World(options).run([&](RankContext& ctx) { without.push_back(trained_weight(ctx)); });
  EXPECT_EQ(seen.verdict, Verdict::ok) << seen.headline;
  EXPECT_EQ(seen.identity, unseen.identity);
  EXPECT_EQ(seen.end_time, unseen.end_time);
  for (int rank = 0; rank < 4; ++rank) EXPECT_THAT(with[rank], BitEqual(without[rank]));
}

}  // namespace
}  // namespace checks_test
