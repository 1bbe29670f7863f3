// SPDX-License-Identifier: BSD-3-Clause
// Contract: tasks of at::launch() belong to their rank, in each world of a process, and LibTorch's pool remains for
// code outside of ranks.
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {
namespace {

namespace this_rank = exec::this_rank;
using testing::HasSubstr;

void reduces_in_the_pool(RankContext& ctx) {
  std::promise<at::Tensor> reduced;
  const at::NoGradGuard no_grad;
  at::launch([&] {
    EXPECT_EQ(this_rank::rank(), ctx.rank());
    EXPECT_NE(this_rank::fiber_of_rank(), 0u);
    EXPECT_FALSE(c10::GradMode::is_enabled());
    auto sum = at::ones({2}) * (ctx.rank() + 1);
    ctx.group().allreduce(sum)->wait();
    reduced.set_value(sum);
  });
  EXPECT_EQ(reduced.get_future().get()[0].item<int>(), 1 + 2 + 3);
}

void launches_outside() {
  std::promise<std::thread::id> where;
  at::launch([&] { where.set_value(std::this_thread::get_id()); });
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
}

TEST(InterOpPool, Tasks_RunInTheirRank_InEveryWorld) {
  WorldOptions options;
  options.ranks = 3;
  std::vector<std::uint64_t> identities;
  for (int world = 0; world < 3; ++world) {
    if (world > 0) launches_outside();
    const auto report = World(options).run(reduces_in_the_pool);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    identities.push_back(report.identity);
  }
  EXPECT_EQ(identities[0], identities[1]);
  EXPECT_EQ(identities[0], identities[2]);
}

TEST(InterOpPool, Tasks_OfARank_MayWaitForEachOther) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    World world({.ranks = 2, .seed = seed});
    const auto report = world.run([](RankContext&) {
      constexpr int tasks = 20;
      std::atomic<int> begun{0};
      std::promise<void> all_begun;
      for (int i = 0; i < tasks; ++i) {
        at::launch([&] {
          if (++begun == tasks) all_begun.set_value();
        });
      }
      all_begun.get_future().get();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

// A task's exception is only logged, as in LibTorch's pool.
TEST(InterOpPool, TaskThatThrows_EndsNothing) {
  World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    std::promise<void> is_about_to;
    at::launch([&] {
      is_about_to.set_value();
      throw std::runtime_error("of a task");
    });
    is_about_to.get_future().get();
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

struct Nested : torch::autograd::Function<Nested> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, int depth) {
    ctx->saved_data["depth"] = depth;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& gradients) {
    const auto depth = static_cast<int>(ctx->saved_data["depth"].toInt());
    if (depth > 0) {
      const at::AutoGradMode with_grad(true);
      auto x = at::ones({1}).requires_grad_();
      Nested::apply(x, depth - 1).sum().backward();
    }
    return {gradients[0], at::Tensor()};
  }
};

TEST(InterOpPool, NestedBackward_IsRefusedByNameOnceItNeedsAThread) {
  const auto run = [](int depth) {
    WorldOptions options;
    options.ranks = 2;
    return World(options).run([depth](RankContext&) {
      auto x = at::ones({1}).requires_grad_();
      Nested::apply(x, depth).sum().backward();
    });
  };
  EXPECT_EQ(run(20).verdict, Verdict::ok);
  for (int world = 0; world < 2; ++world) {
    const auto report = run(100);
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_THAT(report.headline, HasSubstr("calls backward() inside of backward(), nested so deep"));
  }
  EXPECT_EQ(run(20).verdict, Verdict::ok);
}

}  // namespace
}  // namespace rehearse
