// SPDX-License-Identifier: BSD-3-Clause
// Contract: the checkers also see the operators of a rank's threads and callbacks, and the reads of tensors that are
// saved to a file, as in asynchronous checkpoints.
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>

#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

TEST(BufferFibers, WriteByAThread_NamesOperatorAndLine) {
  constexpr int kLine = __LINE__ + 5;
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    std::thread writer([&] {
      if (ctx.rank() == 1) value.add_(1);
    });
    writer.join();
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::add_ at " + place(__FILE__, kLine))) << report.headline;
  EXPECT_TRUE(says(report, "writes the tensor of allreduce #1")) << report.headline;
}

TEST(BufferFibers, ReadByAnAsyncTask_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    auto sum = std::async(std::launch::async, [&] { return value.sum().item<float>(); });
    if (ctx.rank() == 0) sum.get();
    work->wait();
    sum.wait();
  });
  EXPECT_TRUE(says(report, "aten::sum at ")) << report.headline;
}

TEST(BufferFibers, ResizedByAThread_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) std::thread([&] { value.resize_({1000}); }).join();
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::resize_ at ")) << report.headline;
}

TEST(BufferFibers, WriteByACallbackOfAnotherCall_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4}), other = at::ones({4});
    auto first = ctx.group().allreduce(value);
    auto pair = ctx.group().allreduce(other);
    auto done = first->getFuture()->then(
        [&](c10::ivalue::Future&) {
          if (ctx.rank() == 1) other.zero_();
          return c10::IValue(1);
        },
        c10::IntType::get());
    done->wait();
    pair->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::zero_ at ")) << report.headline;
  EXPECT_TRUE(says(report, "writes the tensor of allreduce #2")) << report.headline;
}

TEST(BufferFibers, ThreadsBesideCallsInFlight_AreSilent) {
  expect_silent([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&ctx, i] { ctx.expect(at::ones({8}).mul_(i).sum().item<float>() == 8.0F * i, "sums"); });
    }
    for (auto& thread : threads) thread.join();
    std::thread([&] { work->wait(); }).join();
    value.add_(1);
  });
}

TEST(BufferFibers, TensorSavedInFlight_IsFound) {
  constexpr int kLine = __LINE__ + 5;
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    std::ostringstream file;
    if (ctx.rank() == 1) torch::save(value, file);
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: torch::save at " + place(__FILE__, kLine))) << report.headline;
  EXPECT_TRUE(says(report, "reads the tensor of allreduce #1")) << report.headline;
}

TEST(BufferFibers, ModelSavedByAThreadWhileItsParametersAreInFlight_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    torch::nn::Linear net(4, 4);
    const torch::NoGradGuard no_grad;
    auto work = ctx.group().allreduce(net->weight.detach());
    auto saved = std::async(std::launch::async, [&] {
      std::ostringstream file;
      torch::save(net, file);
    });
    saved.wait();
    work->wait();
  });
  EXPECT_TRUE(says(report, "torch::save at ")) << report.headline;
}

TEST(BufferFibers, SavesOfWhatIsNotWritten_AreSilent) {
  expect_silent([](RankContext& ctx) {
    auto input = at::ones({4}), own = at::zeros({4});
    std::vector<at::Tensor> outputs{at::zeros({4}), at::zeros({4})};
    auto work = ctx.group().allgather(outputs, input);
    std::stringstream file;
    torch::save(std::vector<at::Tensor>{input, own}, file);
    work->wait();
    std::stringstream later;
    torch::save(outputs, later);
    std::vector<at::Tensor> back;
    torch::load(back, later);
    ctx.expect(back.at(1).equal(at::ones({4})), "what was saved comes back");
  });
}

}  // namespace
}  // namespace checked_programs
