// SPDX-License-Identifier: BSD-3-Clause
// Properties that the recorded cases do not cover: caps, extensions, the table, warnings, errors.
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "core/parallel/splitter/splitter_fixture.h"

namespace rehearse::parallel {
namespace {

using graph::List;
using graph::Node;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using BucketSplitter = SplitterFixture;

TEST_F(BucketSplitter, ExactlyTheCap_IsFull) {
  Node& x = input("x");
  Node& a = parameter("a");
  Node& b = parameter("b");
  Node& c = parameter("c");
  module->graph().output({List{mm(mm(mm(x, a), b), c)}});
  EXPECT_THAT(bytes({}, 64), ElementsAre(64, 64, 64));
  EXPECT_THAT(bytes({}, 65), ElementsAre(64, 128));
  EXPECT_THAT(bytes({}, 128), ElementsAre(64, 128));
  EXPECT_THAT(bytes({}, 129), ElementsAre(192));
}

TEST_F(BucketSplitter, Pieces_CallEachOther) {
  Node& x = input("x");
  Node& a = parameter("a");
  Node& b = parameter("b");
  module->graph().output({List{mm(mm(x, a), b)}});
  const auto split = split_by_buckets(module, {64, 64, {}});
  ASSERT_TRUE(split.was_split());
  EXPECT_THAT(split.warnings, IsEmpty());
  std::vector<std::string> calls;
  for (const Node& node : split.module->graph()) {
    if (node.op() == graph::Op::CallModule) calls.push_back(node.target());
  }
  EXPECT_THAT(calls, ElementsAre("submod_0", "submod_1"));
  EXPECT_EQ(module->graph().size(), 6u);  // unchanged
}

TEST_F(BucketSplitter, NothingToCut_IsTheModuleItselfAndSaysWhy) {
  Node& x = input("x");
  module->graph().output({List{module->graph().call_function("torch.relu", {x})}});
  const auto split = split_by_buckets(module, {64, 64, {}});
  EXPECT_EQ(split.module, module);
  EXPECT_THAT(split.warnings, ElementsAre("the graph was not split: it uses no parameters that DDP reduces"));
}

TEST_F(BucketSplitter, FitsIntoTheFirstBucket_NeedsNoWarning) {
  Node& x = input("x");
  Node& a = parameter("a");
  module->graph().output({List{mm(x, a)}});
  EXPECT_THAT(split_by_buckets(module).warnings, IsEmpty());
}

TEST_F(BucketSplitter, EmptyGraph_IsOneEmptyBucket) {
  module->graph().output({List{}});
  const auto buckets = assign_buckets(*module);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_TRUE(buckets[0].nodes.empty());
}

// The in-place addition gives no value that anything uses, so it cannot be a bucket of its own.
TEST_F(BucketSplitter, FullBucketWithoutAValue_IsExtended) {
  Node& x = input("x");
  Node& a = parameter("a");
  Node& b = parameter("b");
  Node& first = mm(x, a);
  module->graph().call_method("add_", {b, 1});
  module->graph().output({List{first}});
  const auto split = split_by_buckets(module, {64, 64, {}});
  ASSERT_EQ(split.buckets.size(), 1u);
  EXPECT_EQ(split.buckets[0].extended_ops, 1);
  EXPECT_EQ(split.buckets[0].bytes_before_extension, 64);
  EXPECT_THAT(split.warnings, ElementsAre(HasSubstr("took in 1 more nodes and 64 bytes")));
}

TEST_F(BucketSplitter, BucketOfFetches_HasNoPieceInPyTorchAndDoesNotAriseForDdp) {
  for (const char* name : {"v", "w"}) module->set_attribute(name, {parameter_meta(), {}, false});
  Node& x = input("x");
  auto& g = module->graph();
  Node& v = g.get_attr("v");
  Node& w = g.get_attr("w");
  Node& relu = g.call_function("torch.relu", {x});
  Node& product = mm(v, w);
  g.output({List{mm(relu, product)}});
  const auto calls = [&](const CountingRules& rules, std::size_t buckets, std::int64_t cap) {
    const auto split = split_by_buckets(module, {cap, cap, rules});
    EXPECT_EQ(split.buckets.size(), buckets);
    std::vector<std::string> called;
    for (const Node& node : split.module->graph()) {
      if (node.op() == graph::Op::CallModule) called.push_back(node.target());
    }
    return std::pair(called, split.warnings);
  };
  const auto [called, warnings] = calls({}, 2, 1);
  EXPECT_THAT(called, ElementsAre("submod_1"));
  EXPECT_THAT(warnings, ElementsAre("bucket 0 has no piece: it only fetches attributes"));
  EXPECT_THAT(calls(CountingRules::ddp(), 1, 1).first, IsEmpty());
  EXPECT_THAT(calls(CountingRules::ddp(), 3, 0).first,
              testing::UnorderedElementsAre("submod_0", "submod_1", "submod_2"));
}

// One node fetches an attribute, another changes a parameter in place. By DDP's rules, the two nodes make no piece, so
// their bucket takes in further nodes.
TEST_F(BucketSplitter, FetchBesideAChangeInPlace_EndsNoBucketForDdp) {
  module->set_attribute("w", {parameter_meta(), {}, false});
  Node& x = input("x");
  Node& a = parameter("a");
  auto& g = module->graph();
  Node& first = mm(x, a);
  Node& w = g.get_attr("w");
  g.call_method("add_", {parameter("b"), 1});
  g.output({List{first, w}});
  const auto split = split_by_buckets(module, {64, 64, CountingRules::ddp()});
  ASSERT_EQ(split.buckets.size(), 1u);
  EXPECT_EQ(split.buckets[0].extended_ops, 2);
  EXPECT_EQ(split_by_buckets(module, {64, 64, CountingRules::pytorch()}).buckets.size(), 2u);
}

TEST_F(BucketSplitter, ParameterWithoutBytes_StaysInTheListOfItsBucket) {
  Node& x = input("x");
  Node& empty = parameter("empty");
  empty.meta().set_value(parameter_meta(0));
  Node& a = parameter("a");
  Node& first = mm(x, empty);
  module->graph().output({List{mm(first, a)}});
  const auto split = split_by_buckets(module, {64, 64, {}});
  ASSERT_EQ(split.buckets.size(), 1u);
  EXPECT_THAT(split.buckets[0].parameters, ElementsAre("a", "empty"));
  EXPECT_THAT(split.buckets[0].nodes, ElementsAre(&first, first.next()));
  EXPECT_THAT(split.warnings,
              ElementsAre("the graph was not split: no bytes of parameters come before the node that fills "
                          "the first bucket (64 of 64 bytes)"));
}

TEST_F(BucketSplitter, OnlyParametersWithoutBytes_HaveTheirOwnWarning) {
  Node& x = input("x");
  Node& empty = parameter("empty");
  empty.meta().set_value(parameter_meta(0));
  module->graph().output({List{mm(x, empty)}});
  EXPECT_THAT(split_by_buckets(module).warnings,
              ElementsAre("the graph was not split: the parameters that it uses have no bytes"));
}

// The bucket is full before it has a node. `extended_ops` counts its first node, as in PyTorch, but the warnings and
// the table do not count it.
TEST_F(BucketSplitter, CapOf0_ExtendsNothingThatHasNoNode) {
  Node& x = input("x");
  Node& a = parameter("a");
  Node& b = parameter("b");
  module->graph().output({List{mm(mm(x, a), b)}});
  const auto split = split_by_buckets(module, {0, 0, {}});
  EXPECT_EQ(split.buckets.back().extended_ops, 1);
  EXPECT_THAT(split.warnings, IsEmpty());
  EXPECT_THAT(bucket_table(split.buckets), testing::Not(HasSubstr("extended")));
}

TEST_F(BucketSplitter, CapOf0_SaysWhatComesAfterTheFirstNode) {
  Node& x = input("x");
  Node& a = parameter("a");
  Node& first = mm(x, a);
  for (int i = 0; i < 3; ++i) module->graph().call_method("add_", {first, 1});
  module->graph().output({List{first}});
  const auto split = split_by_buckets(module, {1, 0, {}});
  EXPECT_EQ(split.buckets.back().extended_ops, 4);
  EXPECT_THAT(split.warnings,
              ElementsAre("bucket 0 was full with its first node (the cap is 0), but nothing in it was used "
                          "outside, so it took in 3 more nodes"));
  EXPECT_THAT(bucket_table(split.buckets),
              HasSubstr("extended by 3 nodes: until then nothing in it was used outside\n"));
}

TEST_F(BucketSplitter, NullModule_IsRefused) { EXPECT_THROW(split_by_buckets(nullptr), graph::GraphError); }

TEST_F(BucketSplitter, SymbolicParameter_IsRefusedByName) {
  Node& x = input("x");
  Node& w = parameter("w");
  graph::TensorMeta meta = *w.meta().tensor();
  meta.sizes[0] = graph::SymExpr{"s0"};
  w.meta().set_value(meta);
  module->graph().output({List{mm(x, w)}});
  try {
    assign_buckets(*module);
    FAIL() << "accepted";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("parameter w has the symbolic size s0"));
  }
}

TEST_F(BucketSplitter, ImpossibleSizes_AreRefusedByName) {
  Node& x = input("x");
  Node& w = parameter("w");
  module->graph().output({List{mm(x, w)}});
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 62}) {
    graph::TensorMeta meta = *w.meta().tensor();
    meta.sizes[0] = size;
    w.meta().set_value(meta);
    EXPECT_THROW(assign_buckets(*module), c10::ValueError) << size;
  }
  graph::TensorMeta stored = *w.meta().tensor();
  stored.storage_nbytes = -5;
  w.meta().set_value(stored);
  EXPECT_THROW(assign_buckets(*module), c10::ValueError);
}

TEST_F(BucketSplitter, SumBeyond63Bits_IsRefused) {
  Node& x = input("x");
  Node& w = parameter("w");
  Node& v = parameter("v");
  for (Node* node : {&w, &v}) {
    graph::TensorMeta meta = *node->meta().tensor();
    meta.storage_nbytes = std::int64_t{1} << 62;
    node->meta().set_value(meta);
  }
  module->graph().output({List{module->graph().call_function("torch.addmm", {x, w, v})}});
  EXPECT_THROW(assign_buckets(*module), c10::ValueError);
}

TEST_F(BucketSplitter, ImpossibleCaps_AreRefused) {
  const auto error_of = [&](std::int64_t cap, std::int64_t first) -> std::string {
    try {
      assign_buckets(*module, {cap, first, {}});
    } catch (const c10::ValueError& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  EXPECT_EQ(error_of(100, -1), "first_bucket_bytes_cap must not be negative, but is -1");
  EXPECT_EQ(error_of(100, 101),
            "First bucket should be smaller/equal to other buckets to get comms warmed up ASAP, but "
            "first_bucket_bytes_cap is 101 and bucket_bytes_cap 100");
  EXPECT_EQ(error_of(0, 0), "");
  try {
    assign_buckets(*module, {.rules = {}, .bucket_bytes_caps = {100, -2}});
    ADD_FAILURE() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_STREQ(error.what_without_backtrace(), "bucket_bytes_caps must not have a negative number, but has -2");
  }
}

TEST(BucketTable, RowsSayBytesNodesAndParameters) {
  ForwardBucket first;
  first.bytes = 1048576;
  first.parameters = {"w1", "b1"};
  ForwardBucket second;
  second.bytes = 64;
  second.parameters = {"w2"};
  second.extended_ops = 2;
  second.bytes_before_extension = 48;
  EXPECT_EQ(bucket_table({first, second, {}}),
            "bucket    bytes  nodes  parameters\n"
            "     0  1048576      0  w1\n"
            "                        b1\n"
            "     1       64      0  w2\n"
            "                        extended by 2 nodes and 16 bytes: until then nothing in it was used outside\n"
            "     2        0      0  (none)\n");
}

}  // namespace
}  // namespace rehearse::parallel
