// SPDX-License-Identifier: BSD-3-Clause
// Splits exported BERTs, in which parameters are placeholders, as inputs are. The pieces compute the same as the whole
// graph.
#include <numeric>
#include <string>

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/bucket_splitter.h>

#include "bit_equal.h"
#include "core/graph/recorded_graph.h"
#include "kit/graph/program_runner.h"

namespace {

using rehearse::test::BitEqual;

namespace graph = rehearse::graph;
namespace parallel = rehearse::parallel;

std::string data_file(const std::string& name) { return std::string(REHEARSE_TEST_DATA "/truth/") + name; }

// Returns the bytes of the parameters that the graph uses. A tied parameter is a placeholder under each of its names,
// but the graph uses it under one name only.
std::int64_t parameter_bytes(const graph::GraphModule& module) {
  std::int64_t bytes = 0;
  for (const graph::Node* input : module.graph().placeholders()) {
    const auto* meta = input->meta().tensor();
    if (!meta || !meta->is_parameter || !meta->requires_grad || input->users().empty()) continue;
    std::int64_t elements = 1;
    for (const auto& size : meta->sizes) elements *= size.number();
    bytes += 4 * elements;
  }
  return bytes;
}

std::int64_t bucket_bytes(const std::vector<parallel::ForwardBucket>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& bucket) { return sum + bucket.bytes; });
}

TEST(SplitBert, BaseMaskedLm_BucketsHoldEveryParameterOnce) {
  const auto module = graph::parse_exported_program(graph::read_gzip(data_file("bert_base_mlm_model.json.gz"))).module;
  const auto split = parallel::split_by_buckets(module, {.rules = parallel::CountingRules::ddp()});
  EXPECT_EQ(bucket_bytes(split.buckets), parameter_bytes(*module));
  const parallel::BucketSplitterOptions caps;
  for (std::size_t i = 1; i < split.buckets.size(); ++i) {
    const bool first_reduced = i + 1 == split.buckets.size();
    EXPECT_GE(split.buckets[i].bytes, first_reduced ? caps.first_bucket_bytes_cap : caps.bucket_bytes_cap) << i;
  }
  for (const auto& piece : split.pieces) {
    EXPECT_EQ(piece.name, "submod_" + std::to_string(piece.id));
    EXPECT_EQ(split.module->find_submodule(piece.name), piece.module);
  }
  std::size_t calls = 0;
  for (const auto& node : split.module->graph()) calls += node.op() == graph::Op::CallModule;
  EXPECT_EQ(calls, split.buckets.size());
  EXPECT_EQ(calls, 14u);
  EXPECT_EQ(split.pieces.size(), calls);
  EXPECT_EQ(parallel::assign_buckets(*module).size(), 14u);  // as PyTorch cuts the model that Dynamo captured
  EXPECT_TRUE(split.warnings.empty());
}

TEST(SplitBert, Tiny_PiecesGiveTheSameBits) {
  const auto whole = graph::load_pt2(data_file("bert_tiny.pt2"));
  const auto ids = at::arange(64, at::kLong).reshape({2, 32});
  const auto expected = graph::ProgramRunner(whole).run({ids});
  for (const std::int64_t cap : {0, 1, 10'000, 100'000}) {
    const auto split = parallel::split_by_buckets(whole.module, {cap, cap, {}});
    ASSERT_TRUE(split.was_split()) << cap;
    auto pieces = whole;
    pieces.module = split.module;
    for (const auto& [name, attribute] : whole.module->attributes()) pieces.module->set_attribute(name, attribute);
    const auto found = graph::ProgramRunner(pieces).run({ids});
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_THAT(found[i].toTensor(), BitEqual(expected[i].toTensor())) << "cap " << cap << ", output " << i;
    }
  }
}

}  // namespace
