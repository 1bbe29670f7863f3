// SPDX-License-Identifier: BSD-3-Clause
// Contract: on GPUs, every operation gives the results of the same calls in a simulation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "../collective_cases.h"
#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "gpu_world.h"

namespace rehearse::real {
namespace {

using rehearse::test::BitEqual;

class GpuCollectives : public GpuWorld, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override { REHEARSE_REQUIRE_GPUS(GetParam()); }

  static std::vector<std::vector<Tensors>> results_of(const std::vector<CollectiveCase>& cases,
                                                      const WorldOptions& options) {
    std::vector<std::vector<Tensors>> results(static_cast<std::size_t>(options.ranks));
    const auto report = run(options, [&](RankContext& ctx) {
      const Place place = [&](const at::Tensor& host) { return host.to(ctx.device(), false, true); };
      auto& own = results[static_cast<std::size_t>(ctx.rank())];
      for (const auto& each : cases) own.push_back(each.calls(ctx.rank(), ctx.size(), ctx.group(), place));
      for (auto& tensors : own) {
        for (auto& tensor : tensors) tensor = tensor.cpu();
      }
    });
    EXPECT_TRUE(has_verdict(report, Verdict::ok)) << "after " << results[0].size() << " cases";
    return results;
  }

  static void expect_alike_on_gpus(const std::vector<CollectiveCase>& cases) {
    const auto expected = results_of(cases, {.ranks = GetParam()});
    expect_alike(cases, expected, results_of(cases, on_gpus(GetParam())));
  }
};

TEST_P(GpuCollectives, Reductions_GiveWhatASimulationGives) { expect_alike_on_gpus(reductions()); }
TEST_P(GpuCollectives, Copies_GiveWhatASimulationGives) { expect_alike_on_gpus(copies()); }
TEST_P(GpuCollectives, Exchanges_GiveWhatASimulationGives) { expect_alike_on_gpus(exchanges()); }

TEST_P(GpuCollectives, Groups_OfSomeRanksAndInAnotherOrder) {
  const int ranks = GetParam();
  const auto report = run(on_gpus(ranks), [&](RankContext& ctx) {
    std::vector<int> backwards;
    for (int rank = ranks - 1; rank >= 0; --rank) backwards.push_back(rank);
    const auto all = ctx.new_group(backwards, "backwards");
    auto root = at::full({3}, ctx.rank(), at::TensorOptions(ctx.device()));
    all.broadcast(root, 0)->wait();
    EXPECT_THAT(root.cpu(), BitEqual(at::full({3}, ranks - 1)));
    for (int alone = 0; alone < ranks; ++alone) {
      const auto group = ctx.new_group({alone}, fmt::format("only {}", alone));
      EXPECT_EQ(static_cast<bool>(group), alone == ctx.rank());
      if (!group) continue;
      auto own = at::ones({2}, at::TensorOptions(ctx.device()));
      group.allreduce(own)->wait();
      EXPECT_THAT(own.cpu(), BitEqual(at::ones({2})));
    }
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
}

TEST_P(GpuCollectives, TensorsOfTheCpu_InTheSameWorld) {
  const int ranks = GetParam();
  const auto report = run(on_gpus(ranks), [&](RankContext& ctx) {
    auto host = at::full({5}, ctx.rank() + 1, at::kLong);
    auto device = at::full({5}, ctx.rank() + 1, at::TensorOptions(ctx.device()).dtype(at::kLong));
    const auto on_host = ctx.group().allreduce(host);
    const auto on_device = ctx.group().allreduce(device);
    on_host->wait();
    on_device->wait();
    EXPECT_THAT(host, BitEqual(at::full({5}, ranks * (ranks + 1) / 2, at::kLong)));
    EXPECT_THAT(device.cpu(), BitEqual(host));
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
}

std::vector<std::vector<at::Tensor>> trained(const WorldOptions& options) {
  std::vector<std::vector<at::Tensor>> parameters(static_cast<std::size_t>(options.ranks));
  const auto report = run(options, [&](RankContext& ctx) {
    rehearse_test::Mlp model;
    rehearse_test::fill(*model);
    model->to(ctx.device());
    DistributedDataParallel ddp(model, ctx.group());
    for (int step = 0; step < 5; ++step) {
      ddp(rehearse_test::batch_of(ctx.rank(), step).to(ctx.device())).pow(2).sum().backward();
      rehearse_test::descend(model->parameters(), 0.01);
      for (auto& each : model->parameters()) each.mutable_grad().zero_();
    }
    for (const auto& each : model->parameters()) {
      parameters[static_cast<std::size_t>(ctx.rank())].push_back(each.detach().cpu());
    }
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
  return parameters;
}

TEST_P(GpuCollectives, Ddp_TrainsAsInASimulation) {
  const auto held = trained(on_gpus(GetParam()));
  const auto expected = trained({.ranks = GetParam()});
  for (const auto& of_rank : held) {
    EXPECT_THAT(of_rank, BitEqual(held.front()));
    EXPECT_TRUE(rehearse_test::close(of_rank, expected.front(), 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, GpuCollectives, ::testing::Values(1, 2, 4),
                         [](const auto& info) { return fmt::format("{}Gpus", info.param); });

}  // namespace
}  // namespace rehearse::real
