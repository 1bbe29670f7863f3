// SPDX-License-Identifier: BSD-3-Clause
// Parameters share buckets exactly as PyTorch 2.11 decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/container/sequential.h>

#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::DistributedDataParallelOptions;
using rehearse::RankContext;
using ::testing::ElementsAre;

constexpr std::size_t kWeight = 64 * 64 * 4;
constexpr std::size_t kBias = 64 * 4;
constexpr std::size_t kLayer = kWeight + kBias;

torch::nn::Sequential six_layers() {
  torch::nn::Sequential net;
  for (int i = 0; i < 6; ++i) net->push_back(torch::nn::Linear(64, 64));
  return net;
}

struct Layout {
  std::vector<std::size_t> bytes;
  std::vector<std::vector<std::string>> names;
};

Layout layout_of(const std::vector<rehearse::parallel::GradientBucket>& buckets) {
  Layout layout;
  for (const auto& bucket : buckets) {
    layout.bytes.push_back(bucket.bytes);
    layout.names.push_back(bucket.parameters);
  }
  return layout;
}

// The layouts before the first iteration, and after the second one.
std::pair<Layout, Layout> layouts(const DistributedDataParallelOptions& options) {
  std::pair<Layout, Layout> result;
  run_ranks({.ranks = 2}, [&](RankContext& ctx) {
    DistributedDataParallel ddp(six_layers(), ctx.group(), options);
    if (ctx.rank() == 1) result.first = layout_of(ddp.buckets());
    for (int step = 0; step < 2; ++step) ddp.forward(at::ones({2, 64})).sum().backward();
    if (ctx.rank() == 1) result.second = layout_of(ddp.buckets());
  });
  return result;
}

TEST(DdpBuckets, Default_OneBucketThenInOrderOfArrival) {
  const auto [initial, rebuilt] = layouts({.bucket_cap_mb = 2.0 * kWeight / (1 << 20), .first_bucket_bytes = kWeight});
  EXPECT_THAT(initial.bytes, ElementsAre(6 * kLayer));
  EXPECT_EQ(initial.names[0].front(), "0.weight");
  // Gradients arrive from the last layer to the first, bias before weight. A weight closes each bucket.
  EXPECT_THAT(rebuilt.bytes, ElementsAre(kLayer, 2 * kLayer, 2 * kLayer, kLayer));
  EXPECT_THAT(rebuilt.names,
              ElementsAre(ElementsAre("5.bias", "5.weight"), ElementsAre("4.bias", "4.weight", "3.bias", "3.weight"),
                          ElementsAre("2.bias", "2.weight", "1.bias", "1.weight"), ElementsAre("0.bias", "0.weight")));
}

TEST(DdpBuckets, OnlyCapGiven_FirstBucketIsAsLarge) {
  const auto rebuilt = layouts({.bucket_cap_mb = 2.0 * kWeight / (1 << 20)}).second;
  EXPECT_THAT(rebuilt.bytes, ElementsAre(2 * kLayer, 2 * kLayer, 2 * kLayer));
}

TEST(DdpBuckets, NothingGiven_SmallModelIsOneBucket) {
  const auto [initial, rebuilt] = layouts({});
  EXPECT_THAT(initial.bytes, ElementsAre(6 * kLayer));
  EXPECT_THAT(rebuilt.bytes, ElementsAre(6 * kLayer));
}

TEST(DdpBuckets, FindUnused_LimitsFromTheStartAndNeverRebuilt) {
  const auto [initial, later] = layouts(
      {.bucket_cap_mb = 2.0 * kWeight / (1 << 20), .first_bucket_bytes = kWeight, .find_unused_parameters = true});
  EXPECT_THAT(
      initial.names,
      ElementsAre(ElementsAre("4.bias", "5.weight", "5.bias"), ElementsAre("2.bias", "3.weight", "3.bias", "4.weight"),
                  ElementsAre("0.bias", "1.weight", "1.bias", "2.weight"), ElementsAre("0.weight")));
  EXPECT_THAT(initial.bytes, ElementsAre(kLayer + kBias, 2 * kLayer, 2 * kLayer, kWeight));
  EXPECT_EQ(later.names, initial.names);
}

TEST(DdpBuckets, OneByteCap_OneParameterABucket) {
  const auto rebuilt = layouts({.bucket_cap_mb = 1.0 / (1 << 20)}).second;
  EXPECT_EQ(rebuilt.bytes.size(), 12u);
  EXPECT_EQ(rebuilt.names.front(), std::vector<std::string>{"5.bias"});
}

TEST(DdpZeroGrad, BucketViews_ClearedWhereTheOptimizerThrows) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    torch::nn::Linear net(3, 2);
    DistributedDataParallel ddp(net, ctx.group(), {.gradient_as_bucket_view = true});
    ddp.forward(at::ones({1, 3})).sum().backward();
    EXPECT_TRUE(net->weight.grad().is_view());
    EXPECT_THROW(net->weight.mutable_grad().detach_(), c10::Error);
    ddp.zero_grad(/*set_to_none=*/false);
    EXPECT_EQ(net->weight.grad().abs().sum().item<float>(), 0.0f);
    ddp.zero_grad();
    EXPECT_FALSE(net->weight.grad().defined());
  });
}

}  // namespace
