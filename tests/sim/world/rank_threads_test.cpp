// SPDX-License-Identifier: BSD-3-Clause
// Threads of a rank's threads, in whole worlds: each has LibTorch's state of a new thread, and its rank's generator.
#include <thread>
#include <tuple>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"

namespace {

namespace this_rank = rehearse::exec::this_rank;
using rehearse::RankContext;
using rehearse::test::BitEqual;

class RankThreads : public ::testing::TestWithParam<std::tuple<int, std::uint64_t>> {
 protected:
  void run(const rehearse::World::Body& body) const {
    rehearse::World world({.ranks = std::get<0>(GetParam()), .seed = std::get<1>(GetParam())});
    const auto report = world.run(body);
    EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << rehearse::sim::to_text(report);
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, RankThreads,
                         ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2, 3)));

void differentiate(int rank) {
  EXPECT_EQ(this_rank::rank(), rank);
  EXPECT_TRUE(c10::GradMode::is_enabled());
  auto x = at::full({4}, 3.0, at::kDouble).requires_grad_();
  const auto loss = (x * x * rank).sum();
  this_rank::yield();
  torch::autograd::backward({loss}, {});
  EXPECT_THAT(x.grad(), BitEqual(at::full({4}, 6.0 * rank, at::kDouble)));
}

void in_threads(int depth, int rank) {
  c10::GradMode::set_enabled(true);
  differentiate(rank);
  if (depth == 0) return;
  // Affects this thread alone, not the threads that it starts.
  c10::GradMode::set_enabled(false);
  std::thread inner([=] { in_threads(depth - 1, rank); });
  inner.join();
  EXPECT_FALSE(c10::GradMode::is_enabled());
}

TEST_P(RankThreads, ThreeDeep_ComputeAsTheirRank) {
  run([](RankContext& ctx) {
    std::thread outermost([&] { in_threads(2, ctx.rank()); });
    outermost.join();
    differentiate(ctx.rank());
  });
}

TEST_P(RankThreads, MadeByACallbackOfAFuture_ComputeAsTheirRank) {
  run([](RankContext& ctx) {
    auto sum = at::full({2}, static_cast<double>(ctx.rank()), at::kDouble);
    const auto work = ctx.group().allreduce(sum);
    const auto done = work->getFuture()->then(
        [&](c10::ivalue::Future&) {
          double seen = 0;
          std::thread helper([&] {
            in_threads(1, ctx.rank());
            seen = sum[0].item<double>();
          });
          helper.join();
          return c10::IValue(seen);
        },
        c10::FloatType::get());
    done->wait();
    EXPECT_EQ(done->value().toDouble(), ctx.size() * (ctx.size() - 1) / 2.0);
    work->wait();
  });
}

TEST_P(RankThreads, DrawFromTheirRanksGenerator) {
  run([](RankContext& ctx) {
    at::manual_seed(100 + static_cast<std::uint64_t>(ctx.rank()));
    auto generator = ctx.generator().clone();
    const auto expected = at::rand({8}, generator);
    this_rank::yield();
    at::Tensor drawn;
    std::thread outer([&] {
      std::thread inner([&] { drawn = at::rand({8}); });
      inner.join();
    });
    outer.join();
    EXPECT_THAT(drawn, BitEqual(expected));
  });
}

}  // namespace
