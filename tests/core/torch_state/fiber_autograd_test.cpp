// SPDX-License-Identifier: BSD-3-Clause
// Ranks suspend in the middle of work for which LibTorch keeps state per thread. Their results must equal those of
// ranks that do not suspend.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "bit_equal.h"

namespace rehearse::torch_state {
namespace {

using rehearse::test::BitEqual;

namespace this_rank = exec::this_rank;

class SeededOracle final : public Oracle {
 public:
  explicit SeededOracle(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t>) override {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ % candidates.size());
  }

 private:
  std::uint64_t state_;
};

class JumpingClock final : public exec::Clock {
 public:
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  VirtualTime now_{};
};

class KeepRunning final : public exec::FailureSink {
 public:
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::keep_running; }
};

exec::RunOutcome run(int ranks, std::uint64_t seed, const std::function<void(int)>& body) {
  SeededOracle oracle(seed);
  DecisionLog log;
  Decisions decisions(oracle, log);
  JumpingClock clock;
  TorchRankState state({.seed = 7});
  KeepRunning sink;
  exec::RankExecutor executor({.ranks = ranks}, decisions, clock, state, sink);
  return executor.run(body);
}

// If a rank throws, it skips its checks, and the other ranks go on. So a test in which no rank may throw must check
// that all ranks have returned.
void expect_all_returned(const exec::RunOutcome& outcome) {
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  EXPECT_TRUE(outcome.failures.empty());
  EXPECT_EQ(outcome.ranks, std::vector<exec::RankEnd>(outcome.ranks.size(), exec::RankEnd::returned));
}

// Does nothing outside of ranks, where the reference run happens.
void suspend_as(int rank) {
  if (!this_rank::is_fiber()) return;
  this_rank::yield();
  EXPECT_EQ(this_rank::rank(), rank);
}

struct SuspendAfterAccumulation final : torch::autograd::PostAccumulateGradHook {
  explicit SuspendAfterAccumulation(int rank) : rank(rank) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    EXPECT_TRUE(parameter.grad().defined());
    suspend_as(rank);
  }
  int rank;
};

at::Tensor reentrant_backward(int rank, const at::Tensor& gradient) {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor a = at::full({3}, static_cast<double>(rank + 1)).requires_grad_();
  a.register_hook([rank](const at::Tensor& inner) {
    suspend_as(rank);
    return inner * 2;
  });
  torch::autograd::backward({(a * a).sum()}, {});
  return gradient + a.grad().sum() * 1e-3;
}

at::Tensor parameter(int rank, at::Generator& generator) {
  at::Tensor weight = at::randn({16, 16}, generator).requires_grad_();
  torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<SuspendAfterAccumulation>(rank));
  return weight;
}

// The gradients after two steps of a small network whose hooks suspend everywhere.
std::vector<at::Tensor> train(int rank) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank));
  const std::vector<at::Tensor> weights = {parameter(rank, generator), parameter(rank, generator)};
  for (int step = 0; step < 2; ++step) {
    const at::Tensor input = at::randn({8, 16}, generator);
    const at::Tensor hidden = input.matmul(weights[0]).relu();
    hidden.register_hook([rank](const at::Tensor& gradient) {
      suspend_as(rank);
      return reentrant_backward(rank, gradient);
    });
    suspend_as(rank);
    const at::Tensor loss = hidden.matmul(weights[1]).pow(2).mean();
    torch::autograd::backward({loss}, {});
    const c10::AutoGradMode no_grad(false);
    suspend_as(rank);
    EXPECT_FALSE(c10::GradMode::is_enabled());
  }
  EXPECT_TRUE(c10::GradMode::is_enabled());
  return {weights[0].grad(), weights[1].grad()};
}

class FiberAutograd : public testing::TestWithParam<int> {};

TEST_P(FiberAutograd, BackwardThatSuspendsInHooks_GivesThePlainGradients) {
  const int ranks = GetParam();
  std::vector<std::vector<at::Tensor>> plain;
  for (int rank = 0; rank < ranks; ++rank) plain.push_back(train(rank));
  for (const std::uint64_t seed : {1, 2}) {
    std::vector<std::vector<at::Tensor>> got(static_cast<std::size_t>(ranks));
    const auto outcome = run(ranks, seed, [&](int rank) { got[static_cast<std::size_t>(rank)] = train(rank); });
    expect_all_returned(outcome);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      ASSERT_EQ(got[rank].size(), 2u);
      for (int k : {0, 1}) EXPECT_THAT(got[rank][k], BitEqual(plain[rank][k])) << "rank " << rank << " seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FiberAutograd, testing::Values(2, 16, 256));

TEST(FiberAutograd, HookThatThrowsOnOneRank_LeavesTheOthersAlone) {
  std::vector<bool> done(4);
  const auto outcome = run(4, 3, [&](int rank) {
    const at::Tensor a = at::ones({4}).requires_grad_();
    a.register_hook([rank](const at::Tensor&) {
      suspend_as(rank);
      if (rank == 1) throw std::runtime_error("hook of rank 1");
    });
    torch::autograd::backward({(a * 3).sum()}, {});
    EXPECT_THAT(a.grad(), BitEqual(at::full({4}, 3.0)));
    done[static_cast<std::size_t>(rank)] = true;
  });
  EXPECT_EQ(done, (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, 1);
  EXPECT_NE(outcome.failures[0].what.find("hook of rank 1"), std::string::npos);
}

TEST_P(FiberAutograd, RandomDrawsBetweenSuspensions_AreEachRanksOwn) {
  auto generator = at::detail::createCPUGenerator(7);
  const at::Tensor plain = at::rand({6}, generator);
  for (const std::uint64_t seed : {1, 2, 3}) {
    int compared = 0;
    const auto outcome = run(GetParam(), seed, [&](int rank) {
      std::vector<at::Tensor> draws;
      for (int k = 0; k < 6; ++k) {
        draws.push_back(at::rand({1}));
        suspend_as(rank);
      }
      EXPECT_THAT(at::cat(draws), BitEqual(plain)) << "rank " << rank;
      ++compared;
    });
    expect_all_returned(outcome);
    EXPECT_EQ(compared, GetParam());
  }
}

// A helper fiber is like another thread of the same process. It has modes of its own, but the rank's generator and
// number.
TEST_P(FiberAutograd, HelperFibers_AreThreadsOfTheirRank) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    int helped = 0, compared = 0;
    const auto outcome = run(GetParam(), seed, [&](int rank) {
      const c10::AutoGradMode no_grad(false);
      bool ended = false;
      exec::RankExecutor::current()->spawn([&, rank] {
        EXPECT_EQ(this_rank::rank(), rank);
        EXPECT_TRUE(c10::GradMode::is_enabled());
        suspend_as(rank);
        at::rand({1});
        ended = true;
        ++helped;
      });
      while (!ended) suspend_as(rank);
      EXPECT_FALSE(c10::GradMode::is_enabled());
      auto generator = at::detail::createCPUGenerator(7);
      at::rand({1}, generator);
      EXPECT_THAT(at::rand({1}), BitEqual(at::rand({1}, generator)));
      ++compared;
    });
    expect_all_returned(outcome);
    EXPECT_EQ(helped, GetParam());
    EXPECT_EQ(compared, GetParam());
  }
}

}  // namespace
}  // namespace rehearse::torch_state
