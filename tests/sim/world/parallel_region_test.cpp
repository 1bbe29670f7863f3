// SPDX-License-Identifier: BSD-3-Clause
// LibTorch's own parallel loops in whole worlds: torch::set_num_threads() above one.
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

namespace {

using rehearse::RankContext;

constexpr std::int64_t kElements = 1 << 20;

class ParallelLoops : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int threads() const { return std::get<1>(GetParam()); }

  std::uint64_t identity_of(const rehearse::World::Body& body) const {
    rehearse::World world({.ranks = ranks(), .seed = 3});
    const auto report = world.run(body);
    EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << rehearse::sim::to_text(report);
    return report.identity;
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, ParallelLoops, ::testing::Combine(::testing::Values(2, 8), ::testing::Values(2, 4)));

TEST_P(ParallelLoops, LargeTensors_AreAddedAndSummed) {
  const int before = at::get_num_threads();
  identity_of([this](RankContext& ctx) {
    at::set_num_threads(threads());
    EXPECT_EQ(at::get_num_threads(), threads());
    for (int step = 0; step < 3; ++step) {
      auto value = at::full({kElements}, static_cast<double>(ctx.rank() + 1), at::kDouble);
      value = value + value;
      ctx.group().allreduce(value)->wait();
      const double each = ctx.size() * (ctx.size() + 1.0);
      EXPECT_EQ(value.sum().item<double>(), each * kElements);
    }
  });
  EXPECT_EQ(at::get_num_threads(), before);
}

TEST_P(ParallelLoops, Backward_ComputesWithThem) {
  identity_of([this](RankContext& ctx) {
    at::set_num_threads(threads());
    auto x = at::full({kElements}, 2.0).requires_grad_();
    torch::autograd::backward({(x * x * (ctx.rank() + 1)).sum()}, {});
    auto gradient = x.grad();
    ctx.group().allreduce(gradient)->wait();
    EXPECT_TRUE(gradient.eq(2.0 * ctx.size() * (ctx.size() + 1)).all().item<bool>());
  });
}

// How threads divide an operation depends on its size, not on which thread is first.
TEST_P(ParallelLoops, SumsOfFloats_AreThoseOfTheRunBefore) {
  std::vector<std::vector<float>> sums(2);
  std::vector<std::uint64_t> identities;
  for (auto& of_run : sums) {
    of_run.resize(static_cast<std::size_t>(ranks()));
    identities.push_back(identity_of([&, this](RankContext& ctx) {
      at::set_num_threads(threads());
      at::manual_seed(static_cast<std::uint64_t>(ctx.rank()));
      auto value = at::randn({kElements});
      auto total = (value * value).sum() + value.cumsum(0).mean();
      of_run[static_cast<std::size_t>(ctx.rank())] = total.item<float>();
      ctx.group().allreduce(total)->wait();
    }));
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(identities[0], identities[1]);
}

}  // namespace
