// SPDX-License-Identifier: BSD-3-Clause
// Compares captured graphs with the graphs that PyTorch's Dynamo recorded of the same models: how many calls they have,
// and how large their buckets are. A graph that is cut into pieces must give the results of the whole graph.
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse/parallel/bucket_splitter.h>

#include "bit_equal.h"
#include "core/parallel/splitter/truth_file.h"
#include "models/custom.h"
#include "models/symbols.h"
#include "models/toy.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

using Sizes = std::vector<std::int64_t>;

std::size_t recorded_calls(const std::string& name) {
  const auto recorded = rehearse_test::RecordedSplits::load().parse(name);
  std::size_t calls = 0;
  for (const auto& node : recorded.at("graphs").at(0)) {
    calls += node.at("op").get<std::string>().starts_with("call_") ? 1 : 0;
  }
  return calls;
}

parallel::BucketSplitterOptions with_cap(std::int64_t bytes) {
  parallel::BucketSplitterOptions options;
  options.bucket_bytes_cap = bytes;
  return options;
}

Sizes buckets_of(const CapturedGraph& captured, const parallel::BucketSplitterOptions& options) {
  Sizes sizes;
  for (const auto& bucket : parallel::assign_buckets(*captured.module, options)) sizes.push_back(bucket.bytes);
  return sizes;
}

// Compares the sizes of the buckets for each recorded pair of caps: one for the first bucket, one for the later
// buckets.
void expect_recorded_buckets(const CapturedGraph& captured, const std::string& name) {
  const auto recorded = rehearse_test::RecordedSplits::load().parse(name);
  ASSERT_FALSE(recorded.at("runs").empty());
  for (const auto& run : recorded.at("runs")) {
    Sizes expected;
    for (const auto& bucket : run.at("compiles").at(0).at("buckets")) expected.push_back(bucket.at("size"));
    auto options = with_cap(run.at("bucket_bytes_cap"));
    options.first_bucket_bytes_cap = run.at("first_bucket_cap");
    EXPECT_EQ(buckets_of(captured, options), expected) << options.bucket_bytes_cap;
  }
}

void expect_split_same(const CapturedGraph& captured, std::int64_t cap, const Tensors& inputs) {
  const auto split = parallel::split_by_buckets(captured.module, with_cap(cap));
  ASSERT_TRUE(split.was_split());
  const Tensors whole = replay(captured, inputs);
  const auto parts = graph::Interpreter(split.module).run(arguments_of(captured, inputs));
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_THAT(parts[i].toTensor(), BitEqual(whole[i]));
}

TEST(CaptureSplits, Toy_HasDynamosCallsAndBuckets) {
  rehearse::test::Toy toy;
  const auto captured = trace_module(toy, at::randn({20, 10}));
  const std::string name = "toy_10_5000_5000_5000_5";
  EXPECT_EQ(targets(captured).size(), recorded_calls(name));
  constexpr std::int64_t kCap = 25 * 1024 * 1024;
  EXPECT_EQ(buckets_of(captured, with_cap(kCap)), (Sizes{220'000, 100'020'000, 100'120'020}));
  expect_recorded_buckets(captured, name);
  expect_split_same(captured, kCap, {at::randn({20, 10})});
}

TEST(CaptureSplits, Custom_HasDynamosCallsAndBuckets) {
  rehearse::test::Custom custom;
  const auto x = at::randn({20, 512});
  const Function forward = [&](const Tensors& in) { return Tensors{custom->forward(in[0], in[1])}; };
  const auto captured = trace(forward, {x, x}, {}, named_tensors(*custom));
  EXPECT_EQ(targets(captured).size(), recorded_calls("custom_model"));
  expect_recorded_buckets(captured, "custom_model");
  EXPECT_EQ(buckets_of(captured, with_cap(1048576)).size(), 3U);
  expect_split_same(captured, 1048576, {x, x});
}

TEST(CaptureSplits, SymbolsCrossTheCut) {
  rehearse::test::SymbolSplitting model;
  const auto captured = trace_module(model, at::randn({20, 512}), {{0, 0}});
  EXPECT_EQ(targets(captured).size(), recorded_calls("symbol_splitting_dynamic"));
  expect_recorded_buckets(captured, "symbol_splitting_dynamic");
  expect_split_same(captured, 1048576, {at::randn({7, 512})});
}

TEST(CaptureSplits, UnbackedSizesCrossTheCut) {
  rehearse::test::NonzeroSplitting model;
  const Function forward = [&](const Tensors& x) { return Tensors{model->forward(x[0], x[1])}; };
  const Tensors inputs = {at::randn({20, 512}), at::tensor({0, 12, 0, 11}, at::kLong)};
  const auto captured = trace(forward, inputs, {{0, 0}}, named_tensors(*model));
  expect_same(captured, forward, inputs, model->parameters());
  expect_split_same(captured, 1048576, {at::randn({7, 512}), at::tensor({1, 0, 3}, at::kLong)});
}

}  // namespace
}  // namespace rehearse::capture::test
