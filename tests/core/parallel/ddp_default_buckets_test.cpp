// SPDX-License-Identifier: BSD-3-Clause
// Contract: without caps in the options, buckets are PyTorch's: at first there is one bucket, and later the limits are
// 1 MiB for the first bucket and 25 MiB for the others. With find_unused_parameters, these limits hold from the start.
// The model is larger than both limits together.
#include <algorithm>
#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::DistributedDataParallelOptions;
using rehearse::RankContext;
using ::testing::ElementsAre;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Name and bytes of each parameter, in the order in which the forward uses them. Gradients arrive in reverse order.
const std::vector<std::pair<std::string, std::size_t>> kParameters = {
    {"embedding", 2 * kMiB}, {"stem", 4 * kMiB}, {"scale", 4},       {"up", 25 * kMiB - 4}, {"gate", kMiB / 2},
    {"down", 25 * kMiB / 2}, {"mix", 12 * kMiB}, {"head", kMiB / 2}, {"bias", kMiB / 2},
};

struct LargeModel : torch::nn::Module {
  LargeModel() {
    for (const auto& [name, bytes] : kParameters) {
      register_parameter(name, at::ones({static_cast<std::int64_t>(bytes / sizeof(float))}));
    }
  }
  at::Tensor forward(double factor) {
    auto sum = at::zeros({});
    for (const auto& parameter : parameters()) sum = sum + parameter.sum() * factor;
    return sum;
  }
};

struct BytesAndNames {
  std::vector<std::size_t> bytes;
  std::vector<std::vector<std::string>> names;
  bool operator==(const BytesAndNames&) const = default;
};

BytesAndNames bytes_and_names_of(const std::vector<rehearse::parallel::GradientBucket>& buckets) {
  BytesAndNames layout;
  for (const auto& bucket : buckets) {
    layout.bytes.push_back(bucket.bytes);
    layout.names.push_back(bucket.parameters);
  }
  return layout;
}

// The buckets that c10d's rule makes of the parameters in this order.
BytesAndNames by_pytorchs_rule(const std::vector<std::size_t>& order, const std::vector<std::size_t>& limits) {
  std::vector<at::Tensor> tensors;
  for (const std::size_t k : order)
    tensors.push_back(at::empty({static_cast<std::int64_t>(kParameters[k].second / sizeof(float))}));
  const auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, limits));
  BytesAndNames layout;
  for (const auto& bucket : buckets) {
    layout.bytes.push_back(0);
    layout.names.emplace_back();
    for (const std::size_t place : bucket) {
      const auto& [name, bytes] = kParameters[order[place]];
      layout.bytes.back() += bytes;
      layout.names.back().push_back(name);
    }
  }
  return layout;
}

std::vector<std::size_t> order_of_use() {
  std::vector<std::size_t> order(kParameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// Returns each rank's layouts before the first iteration and after the second one. Also checks that the gradients of
// the second iteration are means over ranks.
std::vector<std::pair<BytesAndNames, BytesAndNames>> layouts(const rehearse::WorldOptions& world,
                                                             const DistributedDataParallelOptions& options) {
  std::vector<std::pair<BytesAndNames, BytesAndNames>> result(static_cast<std::size_t>(world.ranks));
  run_ranks(world, [&](RankContext& ctx) {
    auto& [initial, later] = result[static_cast<std::size_t>(ctx.rank())];
    DistributedDataParallel ddp(std::make_shared<LargeModel>(), ctx.group(), options);
    initial = bytes_and_names_of(ddp.buckets());
    for (int step = 0; step < 2; ++step) {
      ddp.zero_grad();
      ddp.forward(ctx.rank() + 1.0).backward();
    }
    later = bytes_and_names_of(ddp.buckets());
    for (const auto& parameter : ddp.parameters()) {
      EXPECT_EQ(parameter.grad().min().item<double>(), (1 + ctx.size()) / 2.0);
      EXPECT_EQ(parameter.grad().max().item<double>(), (1 + ctx.size()) / 2.0);
    }
  });
  return result;
}

using RanksAndSeed = std::pair<int, std::uint64_t>;
const std::vector<RanksAndSeed> kWorlds = {{1, 1}, {2, 1}, {2, 2}};

TEST(DdpDefaultBuckets, OneBucketThenOneMiBAndTwentyFiveEach) {
  auto arrival = order_of_use();
  std::reverse(arrival.begin(), arrival.end());
  const auto expected = by_pytorchs_rule(arrival, {kMiB, 25 * kMiB});
  EXPECT_THAT(expected.bytes, ElementsAre(kMiB, 25 * kMiB, 25 * kMiB, 6 * kMiB));
  for (const auto& [ranks, seed] : kWorlds) {
    for (const auto& [initial, rebuilt] : layouts({.ranks = ranks, .seed = seed}, {})) {
      EXPECT_THAT(initial.bytes, ElementsAre(57 * kMiB));
      EXPECT_EQ(rebuilt.bytes, expected.bytes);
      EXPECT_EQ(rebuilt.names, expected.names);
    }
  }
}

// With find_unused_parameters, DDP assigns buckets only once, beginning with the first parameter. It reduces the last
// bucket first.
TEST(DdpDefaultBuckets, FindUnused_SameLimitsFromTheStart) {
  auto expected = by_pytorchs_rule(order_of_use(), {kMiB, 25 * kMiB});
  std::reverse(expected.bytes.begin(), expected.bytes.end());
  std::reverse(expected.names.begin(), expected.names.end());
  EXPECT_THAT(expected.bytes, ElementsAre(kMiB, 25 * kMiB, 29 * kMiB, 2 * kMiB));
  for (const auto& [ranks, seed] : kWorlds) {
    for (const auto& [initial, later] : layouts({.ranks = ranks, .seed = seed}, {.find_unused_parameters = true})) {
      EXPECT_EQ(initial.bytes, expected.bytes);
      EXPECT_EQ(initial.names, expected.names);
      EXPECT_EQ(later, initial);
    }
  }
}

}  // namespace
