// SPDX-License-Identifier: BSD-3-Clause
// DDP's buckets must cut our capture of BERT in C++ as they cut Dynamo's capture of transformers' BERT: the same
// parameters in the same order, bucket by bucket. tests/data/make_bert_splits.py documents how Dynamo's data was
// recorded.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/bucket_splitter.h>

#include "core/graph/recorded_graph.h"
#include "models/bert.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

// One parameter of BERT has two names. Dynamo's list has the key of this map, and named_parameters() has the value.
const std::map<std::string, std::string> kNameHere = {{"cls.predictions.decoder.bias", "cls.predictions.bias"}};

nlohmann::json recorded_bert(const std::string& shape) {
  return graph::read_json_gz(REHEARSE_TEST_DATA "/bert_splits.json.gz").at(shape);
}

Names names_here(Names recorded) {
  for (std::string& name : recorded) {
    if (const auto other = kNameHere.find(name); other != kNameHere.end()) name = other->second;
  }
  return recorded;
}

// The graph includes the loss, and is captured in training mode, like the recorded graph.
CapturedGraph capture_bert(rehearse::test::BertForMaskedLM& model) {
  const Function forward = [&](const Tensors& in) {
    const auto [loss, logits] = model->loss(in[0], in[1]);
    return Tensors{loss, logits};
  };
  const auto ids = at::arange(32, at::kLong).reshape({2, 16});
  return trace(forward, {ids, ids}, {}, named_tensors(*model));
}

void expect_recorded_parameters(rehearse::test::BertForMaskedLM& model, const nlohmann::json& recorded) {
  std::map<std::string, std::int64_t> bytes;
  for (const auto& item : model->named_parameters())
    bytes[item.key()] = static_cast<std::int64_t>(item.value().nbytes());
  EXPECT_EQ(bytes, (recorded.at("parameters").get<std::map<std::string, std::int64_t>>()));
}

void expect_recorded_run(const CapturedGraph& captured, const nlohmann::json& run) {
  parallel::BucketSplitterOptions options;
  options.bucket_bytes_cap = run.at("bucket_bytes_cap");
  options.first_bucket_bytes_cap = run.at("first_bucket_cap");
  SCOPED_TRACE(options.bucket_bytes_cap);
  const auto split = parallel::split_by_buckets(captured.module, options);
  const auto& expected = run.at("buckets");
  EXPECT_EQ(split.pieces.size(), expected.size() == 1 ? 0 : expected.size());
  ASSERT_EQ(split.buckets.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(split.buckets[i].bytes, expected[i].at("size").get<std::int64_t>()) << i;
    EXPECT_EQ(split.buckets[i].parameters, names_here(expected[i].at("params"))) << i;
  }
}

void expect_recorded_splits(const std::string& name, const rehearse::test::BertShape& shape, std::size_t runs) {
  const auto recorded = recorded_bert(name);
  rehearse::test::BertForMaskedLM model(shape);
  expect_recorded_parameters(model, recorded);
  const auto captured = capture_bert(model);
  ASSERT_EQ(recorded.at("runs").size(), runs);
  for (const auto& run : recorded.at("runs")) expect_recorded_run(captured, run);
}

TEST(CaptureBertSplits, Tiny_HasPyTorchsBuckets) {
  expect_recorded_splits("tiny", rehearse::test::BertShape::tiny(), 6);
}

TEST(CaptureBertSplits, Base_HasPyTorchsBuckets) {
  expect_recorded_splits("base", rehearse::test::BertShape::base(), 4);
}

}  // namespace
}  // namespace rehearse::capture::test
