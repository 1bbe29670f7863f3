// SPDX-License-Identifier: BSD-3-Clause
// The parameters that each rule counts, where and how often it counts them.
#include <string>

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "core/parallel/splitter/splitter_fixture.h"

namespace rehearse::parallel {
namespace {

using graph::List;
using graph::Node;
using testing::ElementsAre;

using Counting = SplitterFixture;

TEST_F(Counting, IgnoredParameter_CountsWithPyTorchsRulesOnly) {
  Node& x = input("x");
  Node& first = parameter("first", /*ignored=*/true);
  Node& second = parameter("second");
  module->graph().output({List{mm(mm(x, first), second)}});
  EXPECT_THAT(bytes(CountingRules::pytorch()), ElementsAre(64, 64));
  EXPECT_THAT(bytes({}), ElementsAre(64));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(64));
}

TEST_F(Counting, ParameterUsedTwice_CountsOnceAtItsFirstUseForDdp) {
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

TEST_F(Counting, NestedArguments_CountForDdp) {
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

// An LSTM takes its weights in a list.
TEST_F(Counting, ParametersThatTheRulesDoNotCount_AreWarnedOf) {
  Node& x = input("x");
  Node& counted = parameter("counted");
  Node& in_kwargs = parameter("in_kwargs");
  std::vector<graph::Argument> weights;
  for (int i = 0; i < 10; ++i) weights.emplace_back(parameter("lstm_" + std::to_string(i)));
  auto& g = module->graph();
  Node& lstm = g.call_function("torch.lstm", {mm(x, counted), List(weights)});
  g.output({List{g.call_function("torch.add", {lstm}, {{"other", in_kwargs}})}});
  EXPECT_THAT(split_by_buckets(module).warnings,
              ElementsAre("11 parameters that DDP reduces are in no bucket (lstm_0, lstm_1, lstm_2, lstm_3, lstm_4, "
                          "lstm_5, lstm_6, lstm_7 and 3 more): these rules count no parameters in lists, in keyword "
                          "arguments and of methods of results; "
                          "CountingRules::ddp() does (--rules=ddp)"));
  EXPECT_THAT(split_by_buckets(module, {.rules = CountingRules::ddp()}).warnings, testing::IsEmpty());
}

// The rules do not count the first use, by keyword, so the second use is the first that counts.
TEST_F(Counting, KeywordThenPositionalUse_CountsAtTheOneThatCounts) {
  Node& x = input("x");
  Node& w = parameter("w");
  Node& first = module->graph().call_function("torch.mm", {x}, {{"mat2", w}});
  module->graph().output({List{mm(first, w)}});
  EXPECT_THAT(bytes({.ignored_if_inlined = false, .each_use = false, .nested_arguments = false}), ElementsAre(64));
}

TEST_F(Counting, CalledModule_CountsParametersOfItsSubmodulesOnce) {
  const auto shared = linear();
  const auto block = std::make_shared<graph::GraphModule>();
  block->set_submodule("lin", shared);
  block->set_submodule("tied", shared);
  module->set_submodule("blk", block);
  module->graph().output({List{module->graph().call_module("blk", {input("x")})}});
  for (const auto& rules : {CountingRules::pytorch(), CountingRules{}, CountingRules::ddp()}) {
    const auto buckets = assign_buckets(*module, {1, 1, rules});
    ASSERT_EQ(buckets.size(), 1u);
    EXPECT_EQ(buckets[0].bytes, 64);
    EXPECT_THAT(buckets[0].parameters, ElementsAre("blk_lin.weight"));
  }
}

TEST_F(Counting, ModuleCalledTwice_CountsAtItsLastCallAndForDdpAtItsFirst) {
  for (const char* name : {"a", "b"}) module->set_submodule(name, linear());
  auto& g = module->graph();
  g.output({List{g.call_module("a", {g.call_module("b", {g.call_module("a", {input("x")})})})}});
  EXPECT_THAT(parameters({}), ElementsAre(ElementsAre("b_weight"), ElementsAre("a_weight")));
  EXPECT_THAT(parameters(CountingRules::ddp()), ElementsAre(ElementsAre("a_weight"), ElementsAre("b_weight")));
}

// PyTorch, too, counts the named_parameters() of each called module.
TEST_F(Counting, ModuleInTwoCalledModules_CountsForEachAndForDdpOnce) {
  const auto shared = linear();
  for (const char* name : {"a", "b"}) {
    module->set_submodule(name, std::make_shared<graph::GraphModule>("Block"));
    module->find_submodule(name)->set_submodule("lin", shared);
  }
  auto& g = module->graph();
  g.output({List{g.call_module("b", {g.call_module("a", {input("x")})})}});
  EXPECT_THAT(parameters(CountingRules::pytorch()),
              ElementsAre(ElementsAre("a_lin.weight"), ElementsAre("b_lin.weight")));
  EXPECT_THAT(parameters(CountingRules::ddp()), ElementsAre(ElementsAre("a_lin.weight")));
}

TEST_F(Counting, FetchedAndCalledParameter_CountsOnceForDdp) {
  for (const char* name : {"a", "b"}) module->set_submodule(name, linear());
  Node& x = input("x");
  auto& g = module->graph();
  Node& hoisted = g.get_attr("b.weight");
  Node& a = g.call_module("a", {x});
  Node& b = g.call_module("b", {a});
  Node& first = mm(b, hoisted);
  Node& again = g.get_attr("a.weight");
  g.output({List{mm(first, again)}});
  EXPECT_THAT(parameters({}), ElementsAre(ElementsAre("b.weight"), ElementsAre("a_weight"), ElementsAre("b_weight"),
                                          ElementsAre("a.weight")));
  EXPECT_THAT(parameters(CountingRules::ddp()), ElementsAre(ElementsAre("a_weight"), ElementsAre("b_weight")));
}

// A fetched parameter counts at the first node that uses its value, even if the value is in a list.
TEST_F(Counting, FetchedParameter_CountsForDdpWhereItIsFirstTaken) {
  for (const char* name : {"v", "w"}) module->set_attribute(name, {parameter_meta(), {}, false});
  Node& x = input("x");
  auto& g = module->graph();
  Node& w = g.get_attr("w");
  Node& first = mm(x, g.get_attr("v"));
  Node& second = g.call_function("torch.cat", {List{first, w}});
  Node& third = mm(second, w);
  Node& again = g.get_attr("v");
  g.output({List{mm(third, again)}});
  for (const CountingRules& rules : {CountingRules::ddp(), CountingRules{.each_use = false}}) {
    const auto buckets = assign_buckets(*module, {1, 1, rules});
    ASSERT_EQ(buckets.size(), 2u);
    EXPECT_THAT(buckets[0].parameters, ElementsAre("v"));
    EXPECT_THAT(buckets[1].parameters, ElementsAre("w"));
    EXPECT_EQ(buckets[1].nodes.front(), &second);
  }
}

TEST_F(Counting, TiedAttributes_AreOneParameterForDdp) {
  const at::Tensor weight = at::zeros({4, 4});
  module->set_submodule("a", linear(weight));
  module->set_submodule("b", linear(weight));
  module->set_submodule("c", linear(weight.clone()));
  auto& g = module->graph();
  g.output({List{g.call_module("c", {g.call_module("b", {g.call_module("a", {input("x")})})})}});
  EXPECT_THAT(parameters({}), ElementsAre(ElementsAre("a_weight"), ElementsAre("b_weight"), ElementsAre("c_weight")));
  EXPECT_THAT(parameters(CountingRules::ddp()), ElementsAre(ElementsAre("a_weight"), ElementsAre("c_weight")));
}

TEST_F(Counting, ParameterUsedTwiceByOneNode_CountsOnceForDdp) {
  Node& w = parameter("w");
  module->graph().output({List{mm(w, w)}});
  EXPECT_THAT(bytes({}), ElementsAre(128));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(64));
  EXPECT_THAT(bytes({.each_use = false}), ElementsAre(64));
}

TEST_F(Counting, FrozenParameter_NeverCounts) {
  Node& x = input("x");
  Node& frozen = parameter("frozen");
  graph::TensorMeta meta = *frozen.meta().tensor();
  meta.requires_grad = false;
  frozen.meta().set_value(meta);
  module->graph().output({List{mm(x, frozen)}});
  EXPECT_THAT(bytes({}), ElementsAre(0));
  EXPECT_THAT(bytes(CountingRules::ddp()), ElementsAre(0));
}

}  // namespace
}  // namespace rehearse::parallel
