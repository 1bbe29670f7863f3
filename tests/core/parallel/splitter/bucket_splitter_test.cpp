// SPDX-License-Identifier: BSD-3-Clause
//
// What the recorded cases do not say: other rules of counting, the table, warnings, errors.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/bucket_splitter.h>

namespace {

namespace graph = rehearse::graph;
using graph::Argument;
using graph::List;
using graph::Node;
using rehearse::parallel::assign_buckets;
using rehearse::parallel::bucket_table;
using rehearse::parallel::BucketSplitterOptions;
using rehearse::parallel::CountingRules;
using rehearse::parallel::ForwardBucket;
using rehearse::parallel::split_by_buckets;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A chain of matrix products, one parameter of 64 bytes each.
class BucketSplitter : public testing::Test {
 protected:
  Node& input(const std::string& name) { return module->graph().placeholder(name); }

  Node& parameter(const std::string& name, bool ignored = false) {
    graph::TensorMeta meta;
    meta.sizes = {4, 4};
    meta.strides = {4, 1};
    meta.requires_grad = true;
    meta.is_parameter = true;
    Node& node = module->graph().placeholder(name);
    node.meta().set_value(meta);
    node.meta().ddp_ignored = ignored;
    return node;
  }

  Node& mm(Node& x, Node& w) { return module->graph().call_function("torch.mm", {x, w}); }

  std::vector<std::int64_t> bytes(const CountingRules& rules, std::int64_t cap = 1) {
    std::vector<std::int64_t> all;
    for (const auto& bucket : assign_buckets(*module, {cap, cap, rules})) all.push_back(bucket.bytes);
    return all;
  }

  std::shared_ptr<graph::GraphModule> module = std::make_shared<graph::GraphModule>();
};

TEST_F(BucketSplitter, IgnoredParameter_CountsWithPyTorchsRulesOnly) {
  Node& x = input("x");
  Node& first = parameter("first", /*ignored=*/true);
  Node& second = parameter("second");
  module->graph().output({List{mm(mm(x, first), second)}});
  EXPECT_THAT(bytes(CountingRules::pytorch()), ElementsAre(64, 64));
  EXPECT_THAT(bytes({}), ElementsAre(64));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(64));
}

TEST_F(BucketSplitter, ParameterUsedTwice_CountsOnceAtItsFirstUseForDdp) {
  Node& x = input("x");
  Node& shared = parameter("shared");
  Node& other = parameter("other");
  module->graph().output({List{mm(mm(mm(x, shared), other), shared)}});
  EXPECT_THAT(bytes({}), ElementsAre(64, 64, 64));
  const auto buckets = assign_buckets(*module, {1, 1, CountingRules::ddp()});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_THAT(buckets[0].parameters, ElementsAre("shared"));
  EXPECT_THAT(buckets[1].parameters, ElementsAre("other"));
}

TEST_F(BucketSplitter, NestedArguments_CountForDdp) {
  Node& x = input("x");
  Node& in_list = parameter("in_list");
  Node& in_kwargs = parameter("in_kwargs");
  Node& of_method = parameter("of_method");
  auto& g = module->graph();
  Node& cat = g.call_function("torch.cat", {List{x, in_list}});
  Node& add = g.call_function("torch.add", {cat}, {{"other", in_kwargs}});
  g.output({List{g.call_method("mm", {add, of_method})}});
  EXPECT_THAT(bytes({}), ElementsAre(0));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(64, 64, 64));
}

// A use that does not count is no first use either.
TEST_F(BucketSplitter, KeywordThenPositionalUse_CountsAtTheOneThatCounts) {
  Node& x = input("x");
  Node& w = parameter("w");
  Node& first = module->graph().call_function("torch.mm", {x}, {{"mat2", w}});
  module->graph().output({List{mm(first, w)}});
  EXPECT_THAT(bytes({.ignored_if_inlined = false, .each_use = false, .nested_arguments = false}), ElementsAre(64));
}

TEST_F(BucketSplitter, CalledModule_CountsParametersOfItsSubmodulesOnce) {
  graph::TensorMeta meta;
  meta.sizes = {4, 4};
  meta.strides = {4, 1};
  meta.requires_grad = true;
  meta.is_parameter = true;
  const auto linear = std::make_shared<graph::GraphModule>();
  graph::Attribute weight;
  weight.meta = meta;
  linear->set_attribute("weight", weight);
  const auto block = std::make_shared<graph::GraphModule>();
  block->set_submodule("lin", linear);
  block->set_submodule("tied", linear);
  module->set_submodule("blk", block);
  module->graph().output({List{module->graph().call_module("blk", {input("x")})}});
  for (const auto& rules : {CountingRules::pytorch(), CountingRules{}, CountingRules::ddp()}) {
    const auto buckets = assign_buckets(*module, {1, 1, rules});
    ASSERT_EQ(buckets.size(), 1u);
    EXPECT_EQ(buckets[0].bytes, 64);
    EXPECT_THAT(buckets[0].parameters, ElementsAre("blk_lin.weight"));
  }
}

TEST_F(BucketSplitter, FrozenParameter_NeverCounts) {
  Node& x = input("x");
  Node& frozen = parameter("frozen");
  graph::TensorMeta meta = *frozen.meta().tensor();
  meta.requires_grad = false;
  frozen.meta().set_value(meta);
  module->graph().output({List{mm(x, frozen)}});
  EXPECT_THAT(bytes({}), ElementsAre(0));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(0));
}

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
  EXPECT_EQ(module->graph().size(), 6u);  // as it was
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

// The in-place addition gives nothing that is used, so the bucket cannot be cut off before it.
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
