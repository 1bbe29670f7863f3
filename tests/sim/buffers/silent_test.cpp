// SPDX-License-Identifier: BSD-3-Clause
// Contract: the checkers are silent about correct programs, whatever the schedule, and do not change the run.
#include <chrono>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;
using rehearse::test::BitEqual;

constexpr std::uint64_t kSeeds = 25;

void expect_silent_in_all_schedules(const World::Body& body, int ranks = 4) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    auto options = checked(ranks);
    options.seed = seed;
    options.preempt = seed % 2 == 0;
    if (seed <= 2) expect_silent(body, options);
    const auto report = run_checked(body, options);
    ASSERT_EQ(report.verdict, Verdict::ok) << seed << ": " << report.headline;
    options.check_buffers = options.check_sharing = false;
    EXPECT_EQ(report.identity, run_checked(body, options).identity);
  }
}

// The ways in which a rank learns that its call has ended.
void learn(RankContext& ctx, const Work& work, int way) {
  switch (way) {
    case 0:
      work->wait();
      break;
    case 1:
      while (!work->isCompleted()) {
      }
      break;
    case 2:
      work->getFuture()->wait();
      break;
    case 3:
      ctx.group().barrier()->wait();
      break;
    default:
      ctx.group().allreduce(at::ones({8}))->wait();  // a later call of the group
  }
}

// Includes calls of large tensors, which take longer than a later call of a small tensor.
TEST(Silent, AllWaysToLearnOfAnEnd) {
  for (int way = 0; way < 10; ++way) {
    expect_silent_in_all_schedules([way](RankContext& ctx) {
      for (int step = 0; step < 3; ++step) {
        auto value = at::full({way < 5 ? 8 : 1 << 18}, static_cast<double>(ctx.rank()));
        const auto work = ctx.group().allreduce(value);
        learn(ctx, work, way % 5);
        ctx.expect(value[3].item<double>() == 6, "the sum is right");
        value.zero_();
      }
    });
  }
}

TEST(Silent, CallbacksOfFuturesMayUseTheResult) {
  expect_silent_in_all_schedules([](RankContext& ctx) {
    auto value = at::ones({8});
    auto work = ctx.group().allreduce(value);
    auto halves = work->getFuture()->then(
        [](c10::ivalue::Future& done) {
          done.value().toTensorVector()[0].div_(2);
          return c10::IValue(1);
        },
        c10::IntType::get());
    halves->wait();
    ctx.expect(value.sum().item<double>() == 16, "the mean is right");
  });
}

TEST(Silent, ManyInFlightBesideEachOther) {
  expect_silent_in_all_schedules([](RankContext& ctx) {
    auto flat = at::ones({4, 16});
    std::vector<Work> works;
    for (int i = 0; i < 4; ++i) {
      auto piece = flat[i];
      piece.mul_(i + 1);  // while the earlier all-reduces are in flight
      works.push_back(ctx.group().allreduce(piece));
    }
    for (const auto& work : works) work->wait();
    ctx.expect(flat.sum().item<double>() == 4.0 * 16 * (1 + 2 + 3 + 4), "the sum is right");
  });
}

TEST(Silent, ViewsAndShapesOfTensorsInFlight) {
  expect_silent_in_all_schedules([](RankContext& ctx) {
    auto value = at::ones({4, 4});
    auto work = ctx.group().allreduce(value);
    auto view = value.view({16}).slice(0, 2, 8).detach();
    auto fresh = at::zeros_like(value).add_(at::ones_like(value));
    ctx.expect(view.numel() == 6 && fresh.size(0) == 4, "shapes are right");
    work->wait();
  });
}

TEST(Silent, SendsAndReceivesInARing) {
  expect_silent_in_all_schedules([](RankContext& ctx) {
    auto mine = at::full({4}, static_cast<double>(ctx.rank())), theirs = at::zeros({4});
    const int next = (ctx.rank() + 1) % ctx.size(), before = (ctx.rank() + ctx.size() - 1) % ctx.size();
    for (int hop = 1; hop < ctx.size(); ++hop) {
      auto sent = ctx.group().send(mine, next);
      auto received = ctx.group().recv(theirs, before);
      sent->wait();
      received->wait();
      std::swap(mine, theirs);
    }
    ctx.expect(mine[0].item<double>() == next, "went round");
  });
}

// The message is a copy, so the tensor no longer belongs to the sender's call.
TEST(Silent, BufferedSends_LeaveTheirTensorsToTheSender) {
  auto options = checked();
  options.buffered_sends = true;
  expect_silent(
      [](RankContext& ctx) {
        const auto value = at::full({3}, 7.0);
        if (ctx.rank() == 0) {
          ctx.group().send(value, 1)->wait();
          value.fill_(1);
          ctx.group().send(value, 1)->wait();
          return;
        }
        for (const double expected : {7.0, 1.0}) {
          ctx.group().recv(value, 0)->wait();
          EXPECT_THAT(value, BitEqual(at::full({3}, expected)));
        }
      },
      options);
}

TEST(Silent, TwoGroupsUnderWay) {
  expect_silent_in_all_schedules([](RankContext& ctx) {
    const auto pair = ctx.new_group({0, 1}, "low");
    auto one = at::ones({4}), other = at::ones({4});
    auto all = ctx.group().allreduce(one);
    auto few = pair ? pair.allreduce(other) : Work();
    if (few) few->wait();
    other.add_(1);
    all->wait();
    one.add_(other);
  });
}

TEST(Silent, TrainingUnderDdp) {
  for (const bool views : {false, true}) {
    expect_silent_in_all_schedules(
        [views](RankContext& ctx) {
          using namespace torch::nn;
          Sequential net(Linear(16, 32), ReLU(), Linear(32, 32), ReLU(), Linear(32, 4));
          DistributedDataParallel<Sequential> ddp(
              net, ctx.group(),
              {.bucket_cap_mb = 0.002, .gradient_as_bucket_view = views, .find_unused_parameters = true});
          torch::optim::SGD optimizer(ddp.parameters(), 0.01);
          for (int step = 0; step < 3; ++step) {
            ddp.zero_grad(!views);
            const auto x = at::arange(32, at::kFloat).view({2, 16}) * (ctx.rank() + 1);
            ddp.forward(x).pow(2).mean().backward();
            optimizer.step();
          }
        },
        3);
  }
}

}  // namespace
}  // namespace checked_programs
