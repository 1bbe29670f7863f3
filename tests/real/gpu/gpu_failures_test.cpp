// SPDX-License-Identifier: BSD-3-Clause
// Contract: failures on GPUs have the same verdict and culprit as in a simulation. If possible, the report comes before
// anything hangs, otherwise within a stated time.
#include <chrono>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"
#include "gpu_world.h"

namespace rehearse::real {
namespace {

using rehearse::test::BitEqual;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class GpuFailures : public GpuWorld {
 protected:
  void SetUp() override { REHEARSE_REQUIRE_GPUS(2); }

  static at::Tensor ones(const RankContext& ctx, at::IntArrayRef sizes = {4}) {
    return at::ones(sizes, at::TensorOptions(ctx.device()));
  }

  static void expect_as_simulated(const Report& real, const World::Body& body) {
    const auto simulated = run({.ranks = 2}, body);
    EXPECT_TRUE(has_verdict(real, simulated.verdict));
    ASSERT_EQ(real.rank_lines.size(), simulated.rank_lines.size());
    for (std::size_t rank = 0; rank < real.rank_lines.size(); ++rank) {
      EXPECT_EQ(real.rank_lines[rank].state, simulated.rank_lines[rank].state) << rank;
      EXPECT_EQ(real.rank_lines[rank].waits_for, simulated.rank_lines[rank].waits_for) << rank;
    }
  }
};

TEST_F(GpuFailures, Mismatch_IsReportedBeforeAnythingIsLaunched) {
  const World::Body body = [](RankContext& ctx) {
    auto tensor = ones(ctx, ctx.rank() == 0 ? at::IntArrayRef{4} : at::IntArrayRef{5});
    ctx.group().allreduce(tensor)->wait();
  };
  const auto report = run(on_gpus(2), body);
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  expect_as_simulated(report, body);
}

TEST_F(GpuFailures, MissingRank_IsADeadlockAtOnce) {
  const World::Body body = [](RankContext& ctx) {
    auto tensor = ones(ctx);
    if (ctx.rank() == 0) ctx.group().allreduce(tensor)->wait();
  };
  const auto began = steady_clock::now();
  const auto report = run(on_gpus(2), body);
  EXPECT_LT(steady_clock::now() - began, seconds(60));  // and not after the timeout of 30 minutes
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  expect_as_simulated(report, body);
}

TEST_F(GpuFailures, Exception_EndsTheOthers) {
  const World::Body body = [](RankContext& ctx) {
    auto tensor = ones(ctx);
    if (ctx.rank() == 1) throw std::runtime_error("of rank 1");
    ctx.group().allreduce(tensor)->wait();
  };
  const auto report = run(on_gpus(2), body);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_EQ(report.rank_lines[1].state, RankOutcome::failed);
  EXPECT_EQ(report.rank_lines[1].doing, run({.ranks = 2}, body).rank_lines[1].doing);
}

TEST_F(GpuFailures, LateRank_GetsTheTimeoutOfTheOther) {
  const World::Body body = [](RankContext& ctx) {
    auto tensor = ones(ctx);
    if (ctx.rank() == 1) exec::this_rank::sleep_for(seconds(2), "a pause");
    ctx.group().allreduce(tensor)->wait();
  };
  auto options = on_gpus(2);
  options.timeout = milliseconds(300);
  const auto report = run(options, body);
  EXPECT_TRUE(has_verdict(report, Verdict::timeout));
  EXPECT_NE(report.rank_lines[0].doing.find("Timed out waiting 300ms of real time; missing rank 1"), std::string::npos)
      << report.rank_lines[0].doing;
}

TEST_F(GpuFailures, DeviceThatHangs_FailsTheCallThatWaitsForIt) {
  auto options = on_gpus(2);
  options.timeout = milliseconds(500);
  const auto began = steady_clock::now();
  const auto report = run(options, [](RankContext& ctx) {
    auto tensor = ones(ctx);
    ctx.group().allreduce(tensor)->wait();
    if (ctx.rank() == 1) keep_busy(seconds(6));
    const auto work = ctx.group().allreduce(tensor);
    while (!work->isCompleted()) exec::this_rank::sleep_for(milliseconds(1), "a pause");
    work->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_NE(report.headline.find("was launched on all its devices and is not done within 500 ms"), std::string::npos)
      << report.headline;
  EXPECT_LT(steady_clock::now() - began, seconds(60));
}

TEST_F(GpuFailures, ReadsOfADevice_LetOtherRanksGoOn) {
  std::vector<milliseconds> took(2);
  const auto report = run(on_gpus(2), [&](RankContext& ctx) {
    auto tensor = ones(ctx);
    ctx.group().allreduce(tensor)->wait();
    static_cast<void>(tensor[0].item<float>());
    ctx.group().barrier()->wait();
    const auto began = steady_clock::now();
    keep_busy(milliseconds(100));
    EXPECT_EQ(tensor[0].item<float>(), 2.0F);
    keep_busy(milliseconds(100));
    EXPECT_EQ(tensor.cpu()[1].item<float>(), 2.0F);
    took[static_cast<std::size_t>(ctx.rank())] = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
  // If a read blocked the other rank, one rank would take twice as long as the other.
  EXPECT_LT(took[0], took[1] + took[1] / 2);
  EXPECT_LT(took[1], took[0] + took[0] / 2);
  EXPECT_GE(took[0], milliseconds(190));
  EXPECT_LT(std::max(took[0], took[1]), milliseconds(330));
}

TEST_F(GpuFailures, Seeds_AreARanksOwn) {
  std::vector<std::vector<at::Tensor>> drawn(2);
  const auto report = run(on_gpus(2), [&](RankContext& ctx) {
    auto& own = drawn[static_cast<std::size_t>(ctx.rank())];
    own.push_back(at::rand({4}, at::TensorOptions(ctx.device())).cpu());
    ctx.group().barrier()->wait();
    if (ctx.rank() == 0) at::manual_seed(7);
    ctx.group().barrier()->wait();
    own.push_back(at::rand({4}, at::TensorOptions(ctx.device())).cpu());
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
  EXPECT_THAT(drawn[0][0], BitEqual(drawn[1][0]));    // all ranks begin with the world's seed
  EXPECT_FALSE(at::equal(drawn[0][1], drawn[1][1]));  // a rank that seeds itself seeds no other
}

}  // namespace
}  // namespace rehearse::real
