// SPDX-License-Identifier: BSD-3-Clause
// Contract: state that LibTorch keeps per thread or process on GPUs is each rank's own: current device and streams,
// generators, backward passes. A rank that waits for its GPU lets the others run.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"
#include "gpu_world.h"

namespace rehearse::real {
namespace {

using rehearse::test::BitEqual;

namespace this_rank = exec::this_rank;

class GpuState : public GpuWorld {
 protected:
  void SetUp() override { REHEARSE_REQUIRE_GPUS(2); }

  static c10::impl::VirtualGuardImpl guard() { return {c10::kCUDA}; }
  static at::Device device(int index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }
  static const at::Generator& generator(at::Device of) { return at::globalContext().defaultGenerator(of); }

  static void expect_ok(const World::Body& body) { EXPECT_TRUE(has_verdict(run(on_gpus(2), body), Verdict::ok)); }
};

TEST_F(GpuState, CurrentDevice_IsTheRanksAndThatOfItsGuards) {
  expect_ok([](RankContext& ctx) {
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(guard().getDevice(), ctx.device());
      {
        const c10::DeviceGuard other(device(1 - ctx.rank()));
        this_rank::yield();
        EXPECT_EQ(guard().getDevice(), device(1 - ctx.rank()));
        EXPECT_EQ(at::empty({1}, at::TensorOptions(c10::kCUDA)).device(), device(1 - ctx.rank()));
      }
      this_rank::yield();
    }
    EXPECT_EQ(at::empty({1}, at::TensorOptions(c10::kCUDA)).device(), ctx.device());
  });
}

TEST_F(GpuState, CurrentDeviceOfTheHost_ComesBack) {
  const auto before = guard().getDevice();
  expect_ok([](RankContext&) { this_rank::yield(); });
  EXPECT_EQ(guard().getDevice(), before);
}

TEST_F(GpuState, CurrentStreams_AreTheRanksOwn) {
  expect_ok([](RankContext& ctx) {
    for (int index : {0, 1}) EXPECT_EQ(guard().getStream(device(index)), guard().getDefaultStream(device(index)));
    const auto own = guard().getStreamFromGlobalPool(ctx.device());
    if (ctx.rank() == 0) guard().exchangeStream(own);
    this_rank::yield();
    EXPECT_EQ(guard().getStream(ctx.device()), ctx.rank() == 0 ? own : guard().getDefaultStream(ctx.device()));
    EXPECT_EQ(guard().getStream(device(0)) == guard().getDefaultStream(device(0)), ctx.rank() == 1);
  });
}

TEST_F(GpuState, Generators_BeginWithTheSeedOfTheCpusAndAreTheRanksOwn) {
  const auto hosts_seed = generator(device(1)).current_seed();
  expect_ok([](RankContext& ctx) {
    const auto seed = generator(at::kCPU).current_seed();
    for (int index : {0, 1}) EXPECT_EQ(generator(device(index)).current_seed(), seed);
    const auto options = at::TensorOptions(ctx.device());
    const auto first = at::rand({8}, options);
    if (ctx.rank() == 0) at::manual_seed(seed + 1);
    this_rank::yield();
    for (int index : {0, 1}) {
      EXPECT_EQ(generator(device(index)).current_seed(), ctx.rank() == 0 ? seed + 1 : seed) << index;
    }
    const auto second = at::rand({8}, options);
    at::manual_seed(seed);
    EXPECT_THAT(at::rand({8}, options), BitEqual(first));
    EXPECT_EQ(at::rand({8}, options).equal(second), ctx.rank() == 1);
  });
  EXPECT_EQ(generator(device(1)).current_seed(), hosts_seed);
}

TEST_F(GpuState, BackwardPass_IsTheRanksFromBeginningToEnd) {
  expect_ok([](RankContext& ctx) {
    auto weight = at::ones({4, 4}, at::TensorOptions(ctx.device())).set_requires_grad(true);
    int hooks = 0;
    weight.register_hook([&](const at::Tensor&) {
      EXPECT_TRUE(this_rank::is_fiber());
      EXPECT_EQ(this_rank::rank(), ctx.rank());
      this_rank::yield();
      ++hooks;
    });
    at::mm(weight, weight).sum().backward();
    EXPECT_EQ(hooks, 1);
    EXPECT_THAT(weight.grad().cpu(), BitEqual(at::full({4, 4}, 8.0)));
  });
}

struct Wait {
  const char* name;
  std::function<void(const at::Tensor& busy)> until_done;
};

void PrintTo(const Wait& wait, std::ostream* out) { *out << wait.name; }

class GpuWaits : public GpuState, public ::testing::WithParamInterface<Wait> {};

// Rank 0 runs first. If rank 0 blocked the thread, rank 1 would record its step after rank 0's.
TEST_P(GpuWaits, LetOthersRun) {
  std::vector<int> order;
  expect_ok([&](RankContext& ctx) {
    const auto busy = at::ones({4}, at::TensorOptions(ctx.device()));
    if (ctx.rank() == 0) {
      keep_busy(std::chrono::milliseconds(300));
      GetParam().until_done(busy);
    } else {
      for (int k = 0; k < 10; ++k) this_rank::yield();
    }
    order.push_back(ctx.rank());
  });
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
}

c10::impl::VirtualGuardImpl cuda() { return {c10::kCUDA}; }

INSTANTIATE_TEST_SUITE_P(
    Calls, GpuWaits,
    ::testing::Values(Wait{"Item", [](const at::Tensor& busy) { EXPECT_EQ(busy.sum().item<float>(), 4); }},
                      Wait{"Cpu", [](const at::Tensor& busy) { EXPECT_THAT(busy.cpu(), BitEqual(at::ones({4}))); }},
                      Wait{"Stream",
                           [](const at::Tensor& busy) { cuda().synchronizeStream(cuda().getStream(busy.device())); }},
                      Wait{"Event",
                           [](const at::Tensor& busy) {
                             c10::Event event(c10::kCUDA);
                             event.record(cuda().getStream(busy.device()));
                             event.synchronize();
                           }},
                      Wait{"Device", [](const at::Tensor& busy) { cuda().synchronizeDevice(busy.device().index()); }}),
    [](const auto& info) { return std::string(info.param.name); });

std::vector<at::Tensor> gradients_of_dropout(RankContext& ctx, bool saves) {
  at::manual_seed(5 + static_cast<std::uint64_t>(ctx.rank()));
  torch::nn::Linear net(64, 64);
  net->to(ctx.device());
  auto layer = [net](const at::Tensor& h) mutable { return at::dropout(net(h).relu(), 0.5, true); };
  const auto forward = [&](const at::Tensor& h) { return saves ? checkpoint(layer, h) : layer(h); };
  const auto x = at::randn({32, 64}, at::TensorOptions(ctx.device())).requires_grad_();
  forward(forward(x)).square().sum().backward();
  return {net->weight.grad().cpu(), net->bias.grad().cpu(), x.grad().cpu(), at::rand({4}, x.options()).cpu()};
}

TEST_F(GpuState, Checkpoints_DrawTheSameValuesAgain) {
  expect_ok([](RankContext& ctx) {
    const auto saved = gradients_of_dropout(ctx, true), plain = gradients_of_dropout(ctx, false);
    EXPECT_THAT(saved, BitEqual(plain));
  });
}

}  // namespace
}  // namespace rehearse::real
