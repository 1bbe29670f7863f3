// SPDX-License-Identifier: BSD-3-Clause
// In virtual time, communication of units overlaps with computing.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>

#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;

constexpr int kRanks = 4, kDepth = 8;
constexpr std::int64_t kWidth = 64, kRows = 32;

torch::nn::Sequential layers() {
  torch::nn::Sequential net;
  for (int i = 0; i < kDepth; ++i) net->push_back(torch::nn::Linear(kWidth, kWidth));
  return net;
}

struct Call {
  bool gathers;
  rehearse::VirtualTime created, completed;
  double seconds() const { return std::chrono::duration<double>(completed - created).count(); }
};

struct Timeline {
  std::vector<Call> calls;  // of rank 0, in its second step
  double seconds = 0;       // duration of that step
};

Timeline second_step(const rehearse::sim::NetworkModel& network, double flops, bool prefetch = true) {
  Timeline timeline;
  rehearse::VirtualTime begin{}, end{};
  rehearse::World world(
      {.ranks = kRanks, .network = network, .compute = {.flops_per_second = flops}, .keep_all_events = true});
  const auto report = world.run([&](RankContext& ctx) {
    FullyShardedDataParallel fsdp(layers(), ctx.group(),
                                  {.units = kEachLinear, .forward_prefetch = prefetch, .init_sync = false});
    for (int step = 0; step < 2; ++step) {
      ctx.group().barrier()->wait();
      if (ctx.rank() == 0) begin = ctx.now();
      fsdp.zero_grad();
      fsdp(at::ones({kRows, kWidth})).sum().backward();
    }
    if (ctx.rank() == 0) end = ctx.now();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  timeline.seconds = std::chrono::duration<double>(end - begin).count();
  for (const auto& event : world.events().of_rank(0)) {
    const auto type = world.events().signature(event).type;
    if (event.time_created < begin || type == c10d::OpType::BARRIER) continue;
    timeline.calls.push_back({type == c10d::OpType::_ALLGATHER_BASE, event.time_created, event.time_ended});
  }
  return timeline;
}

constexpr double kAnyBandwidth = 1e18, kAnyFlops = 1e18;

double computing(double flops) {
  return second_step({.latency = {}, .bytes_per_second = kAnyBandwidth}, flops).seconds;
}

double communicating(const Timeline& timeline) {
  double seconds = 0;
  for (const auto& call : timeline.calls) seconds += call.seconds();
  return seconds;
}

void expect_overlap(double bytes_per_second, double flops) {
  const rehearse::sim::NetworkModel network{.latency = {}, .bytes_per_second = bytes_per_second};
  const auto alone = second_step(network, kAnyFlops);
  const auto both = second_step(network, flops);
  ASSERT_EQ(both.calls.size(), static_cast<std::size_t>(3 * kDepth));
  const double compute = computing(flops), communicate = communicating(alone);
  const double best = alone.calls.front().seconds() + std::max(compute, communicate) + alone.calls.back().seconds();
  ::testing::Test::RecordProperty("seconds", std::to_string(both.seconds));
  ::testing::Test::RecordProperty("best", std::to_string(best));
  EXPECT_LE(both.seconds, 1.05 * best);
  EXPECT_GE(both.seconds, std::max(compute, both.calls.front().seconds()));
}

TEST(FsdpOverlap, BandwidthBound_IsNoLongerThanItsCommunication) { expect_overlap(1e6, 1e9); }

TEST(FsdpOverlap, ComputeBound_IsNoLongerThanItsComputing) { expect_overlap(1e9, 1e7); }

TEST(FsdpOverlap, NextGather_BeginsBeforeTheUnitHasEnded) {
  constexpr double kFlops = 1e7;
  const rehearse::sim::NetworkModel network{.latency = {}, .bytes_per_second = 1e9};
  const auto timeline = second_step(network, kFlops);
  // The time of a layer's forward. The backward takes this time twice for each layer, but only once for the first one.
  const double layer = computing(kFlops) / (3 * kDepth - 1);
  for (std::size_t i = 1; i < kDepth; ++i) {
    const std::chrono::duration<double> begins = timeline.calls[i].created - timeline.calls[0].completed;
    EXPECT_NEAR(begins.count(), static_cast<double>(i - 1) * layer, 0.01 * layer) << i;
  }
  EXPECT_GT(second_step(network, kFlops, /*prefetch=*/false).seconds, timeline.seconds);
}

}  // namespace
