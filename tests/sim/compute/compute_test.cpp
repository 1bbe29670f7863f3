// SPDX-License-Identifier: BSD-3-Clause
// Contract: an operator takes the model's time, rounded to nanoseconds, on the rank that computes. Operators on other
// threads of the rank are not counted. By default, computing takes no time.
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <rehearse/comm/functional.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

namespace rehearse::sim {
namespace {

using namespace std::chrono_literals;
using rehearse::test::BitEqual;

// Models in which a flop, a byte or an operator takes a nanosecond.
constexpr ComputeModel kFlops{.flops_per_second = 1e9};
constexpr ComputeModel kBytes{.bytes_per_second = 1e9};
constexpr ComputeModel kOperators{.per_operator = 1ns};

WorldOptions one_rank(const ComputeModel& model) { return {.ranks = 1, .compute = model, .explain_failures = false}; }

// The time of `work` on the only rank of a world.
std::int64_t nanoseconds(const ComputeModel& model, const std::function<void()>& work) {
  std::int64_t taken = -1;
  const auto report = World(one_rank(model)).run([&](RankContext& ctx) {
    const auto begin = ctx.now();
    work();
    taken = (ctx.now() - begin).count();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << to_text(report);
  return taken;
}

TEST(Compute, MatrixProducts_TakeTheirFlops) {
  const auto a = at::ones({2, 3}), b = at::ones({3, 4}), c = at::ones({2, 4});
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::mm(a, b); }), 2 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::addmm(c, a, b); }), 2 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::matmul(a, b); }), 2 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::linear(a, b.t(), at::ones({4})); }), 2 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::bmm(at::ones({5, 2, 3}), at::ones({5, 3, 4})); }), 2 * 5 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::baddbmm(at::ones({5, 2, 4}), at::ones({5, 2, 3}), at::ones({5, 3, 4})); }),
            2 * 5 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::mm(at::ones({0, 3}), b); }), 0);
  EXPECT_EQ(nanoseconds(kFlops, [&] { c.addmm_(a, b); }), 2 * 2 * 3 * 4);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::relu(at::add(a, a)); }), 0);
}

// The numbers are those of FlopCounterMode for the same calls.
TEST(Compute, ConvolutionsAndAttention_TakeTheirFlops) {
  const auto x = at::ones({2, 4, 5, 6}), weight = at::ones({8, 4, 3, 3});
  const std::vector<std::int64_t> ones{1, 1}, zeros{0, 0};
  const std::int64_t forward = 2 * 2 * (3 * 4) * (3 * 3) * 8 * 4;
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::conv2d(x, weight); }), forward);
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::conv2d(x, at::ones({8, 2, 3, 3}), {}, ones, zeros, ones, 2); }), forward / 2);
  const std::int64_t transposed = 2 * 2 * (5 * 6) * (3 * 3) * 4 * 7;
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::conv_transpose2d(x, at::ones({4, 7, 3, 3})); }), transposed);
  const auto x_leaf = x.clone().requires_grad_(), weight_leaf = weight.clone().requires_grad_();
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::conv2d(x_leaf, weight_leaf).sum().backward(); }), 3 * forward);
  const auto q = at::ones({2, 3, 5, 8}), k = at::ones({2, 3, 7, 8});
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::scaled_dot_product_attention(q, k, k); }), 2 * 2 * (2 * 3) * 5 * 7 * 8);
  const auto q_leaf = q.clone().requires_grad_();
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::scaled_dot_product_attention(q_leaf, k, k).sum().backward(); }),
            (2 + 5) * 2 * (2 * 3) * 5 * 7 * 8);
}

TEST(Compute, Bytes_AreThoseOfTensorsTakenAndGiven) {
  const auto a = at::ones({10}), b = at::ones({10}, at::kDouble);
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::add(a, a); }), 3 * 40);
  EXPECT_EQ(nanoseconds(kBytes, [&] { a.add_(a); }), 3 * 40);
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::add(a, b); }), 40 + 80 + 80);
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::cat({a, a, a}); }), 3 * 40 + 120);
  auto out = at::empty({10});
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::add_out(out, a, a); }), 3 * 40);
  EXPECT_EQ(nanoseconds(kBytes, [&] { a.view({2, 5}).t().detach(); }), 0);
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::empty({1000}); }), 0);
  EXPECT_EQ(nanoseconds(kBytes, [&] { at::zeros({0}); }), 0);
}

TEST(Compute, TheLongerOfFlopsAndBytes_AndTheLaunch) {
  const auto a = at::ones({4, 4});
  const auto mm = [&] { at::mm(a, a); };
  EXPECT_EQ(nanoseconds({1e9, 1e9, 5ns}, mm), 5 + 3 * 64);
  EXPECT_EQ(nanoseconds({0.5e9, 1e9, 5ns}, mm), 5 + 2 * 128);
  EXPECT_EQ(nanoseconds({3e9, 0, 0ns}, mm), 43);  // 42.67, rounded
}

TEST(Compute, Operators_CountOnce) {
  const auto a = at::ones({2, 3}), weight = at::ones({4, 3}), bias = at::ones({4});
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::add(a, a); }), 1);
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::linear(a, weight, bias); }), 2);  // t, addmm
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::layer_norm(a, {3}); }), 1);       // native_layer_norm
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::softmax(a, 0); }), 1);
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::ones({1}).item<float>(); }), 2);  // ones, _local_scalar_dense
  EXPECT_EQ(nanoseconds(kOperators, [&] { at::empty({2}, at::kMeta).add(1); }), 0);
}

TEST(Compute, Backward_IsCountedWhereItRuns) {
  const auto weight = at::ones({3, 4}).requires_grad_();
  const auto x = at::ones({2, 3}).requires_grad_();
  const std::int64_t product = 2 * 2 * 3 * 4;
  EXPECT_EQ(nanoseconds(kFlops, [&] { at::mm(x, weight).sum().backward(); }), 3 * product);
}

TEST(Compute, Results_AreThoseWithoutAModel) {
  const auto train = [](const ComputeModel& model) {
    at::Tensor weight_grad, out;
    nanoseconds(model, [&] {
      const auto weight = at::randn({3, 4}).requires_grad_();
      auto x = at::randn({2, 3});
      x.mul_(2).select(0, 0).zero_();
      out = at::dropout(at::gelu(at::linear(x, weight.t())), 0.5, true);
      out.sum().backward();
      weight_grad = weight.grad();
    });
    return std::pair(out, weight_grad);
  };
  const auto [out, grad] = train({});
  const auto [timed_out, timed_grad] = train({1e9, 1e9, 10ns});
  EXPECT_THAT(out, BitEqual(timed_out));
  EXPECT_THAT(grad, BitEqual(timed_grad));
}

TEST(Compute, ByDefault_NothingTakesTimeOrSwitches) {
  const auto a = at::ones({64, 64});
  World world({.ranks = 2});
  const auto report = world.run([&](RankContext& ctx) {
    at::mm(a, a);
    ctx.compute(0ns);
    EXPECT_EQ(ctx.now(), kTimeZero);
  });
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(world.decisions().decisions().size(), 1u);  // which rank runs first
}

TEST(Compute, Ranks_ComputeSideBySide) {
  for (const int ranks : {1, 2, 5}) {
    const auto report = World({.ranks = ranks, .compute = kFlops}).run([&](RankContext& ctx) {
      for (int i = 0; i <= ctx.rank(); ++i) at::mm(at::ones({10, 10}), at::ones({10, 10}));
      EXPECT_EQ(ctx.now() - kTimeZero, VirtualDuration(2000 * (ctx.rank() + 1)));
      ctx.compute(3us);
      EXPECT_EQ(ctx.now() - kTimeZero, VirtualDuration(2000 * (ctx.rank() + 1) + 3000));
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << to_text(report);
  }
}

TEST(Compute, Collectives_TakeWhatTheNetworkTakes) {
  const WorldOptions options{
      .ranks = 2, .network = {.latency = 1us, .bytes_per_second = 1e9}, .compute = {1e3, 1e3, 1ms}};
  const std::vector<at::Tensor> inputs{at::ones({8}), at::ones({8})};
  const auto report = World(options).run([&](RankContext& ctx) {
    ctx.group().allreduce(inputs[static_cast<std::size_t>(ctx.rank())])->wait();
    EXPECT_EQ(ctx.now() - kTimeZero, VirtualDuration(2 * 1000 + 32));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << to_text(report);
}

// The second call has a gradient, so another operator of LibTorch's carries it out.
TEST(Compute, FunctionalCollectives_TakeWhatTheNetworkTakes) {
  const WorldOptions options{.ranks = 2, .compute = {.per_operator = 1ms}};
  const std::vector<at::Tensor> inputs{at::ones({8}), at::ones({8}).requires_grad_()};
  std::vector<VirtualDuration> times(inputs.size());
  const auto report = World(options).run([&](RankContext& ctx) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto begin = ctx.now();
      functional::all_gather_tensor(inputs[i], ctx.group());
      times[i] = ctx.now() - begin;
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << to_text(report);
  EXPECT_EQ(times[1], times[0]);
}

TEST(Compute, ThreadsOfARank_AreNotCounted) {
  const auto a = at::ones({4, 4});
  EXPECT_EQ(nanoseconds(kFlops, [&] { std::thread([&] { at::mm(a, a); }).join(); }), 0);
}

// A function whose backward takes virtual time, so that the rank suspends inside a backward pass.
struct SlowIdentity : torch::autograd::Function<SlowIdentity> {
  static at::Tensor forward(torch::autograd::AutogradContext* autograd, const at::Tensor& x, RankContext* ctx) {
    autograd->saved_data["ctx"] = reinterpret_cast<std::int64_t>(ctx);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* autograd,
                                                 torch::autograd::variable_list grads) {
    auto* const ctx = reinterpret_cast<RankContext*>(autograd->saved_data["ctx"].toInt());
    ctx->compute((ctx->rank() + 1) * 1us);
    return {grads[0] * (ctx->rank() + 1), {}};
  }
};

TEST(Compute, InBackward_TheOthersRunMeanwhile) {
  std::vector<int> order;
  const auto report = World({.ranks = 4}).run([&](RankContext& ctx) {
    const auto leaf = at::ones({3}).requires_grad_();
    SlowIdentity::apply(leaf, &ctx).sum().backward();
    order.push_back(ctx.rank());
    EXPECT_EQ(ctx.now() - kTimeZero, VirtualDuration(1000 * (ctx.rank() + 1)));
    EXPECT_THAT(leaf.grad(), BitEqual(at::full({3}, static_cast<float>(ctx.rank() + 1))));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << to_text(report);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Compute, WorldThatEndsMeanwhile_UnwindsTheRank) {
  int unwound = 0;
  const auto body = [&](RankContext& ctx) {
    struct Unwound {
      int& count;
      ~Unwound() { ++count; }
    } unwound_here{unwound};
    if (ctx.rank() == 0) {
      ctx.compute(1ns);
      throw std::runtime_error("it fails");
    }
    for (;;) at::mm(at::ones({100, 100}), at::ones({100, 100}));
  };
  const WorldOptions options{.ranks = 3, .compute = kFlops, .explain_failures = false};
  const auto report = World(options).run(body);
  EXPECT_EQ(report.verdict, Verdict::rank_failed) << to_text(report);
  EXPECT_EQ(unwound, 3);
}

TEST(Compute, RankThatComputesTooLong_IsNamed) {
  const auto report = World({.ranks = 2, .timeout = 1ms}).run([](RankContext& ctx) {
    if (ctx.rank() == 1) ctx.compute(1s);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, testing::StartsWith("rank 1 was still in a computation at compute_test.cpp:"));
}

TEST(Compute, WhatMakesNoSense_IsRefused) {
  EXPECT_THAT([] { World({.compute = {-1.0, 0, -2ns}}); },
              testing::ThrowsMessage<std::invalid_argument>(
                  "WorldOptions::compute.flops_per_second is -1; it is 0 (takes no time) or more, and finite\n"
                  "WorldOptions::compute.per_operator is -2 ns; it is 0 or more"));
  const auto report = World(one_rank({})).run([](RankContext& ctx) { ctx.compute(-1ns); });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.headline, testing::HasSubstr("RankContext::compute() was given -1 ns"));
}

}  // namespace
}  // namespace rehearse::sim
