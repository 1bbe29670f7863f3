// SPDX-License-Identifier: BSD-3-Clause
// On recorded random graphs, splits equal those of torch.fx.passes.split_module, node by node and name by name. Other
// tests check what partitions take and give, modes that a cut interrupts, names that would clash, and errors.
#include <rehearse/graph/split.h>
#include <rehearse/graph/text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/check/verify.h"
#include "core/graph/recorded_graph.h"

namespace rehearse::graph {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

struct Example {
  GraphModule module;
  json partition;

  explicit Example(const json& recorded) : partition(recorded.at("partition")) {
    add_recorded_nodes(module, recorded.at("nodes"));
  }
  SplitModule split() const {
    return split_by(module, [this](const Node& node) { return partition.at(node.name()).get<int>(); });
  }
};

const json& recorded_splits() {
  static const json cases = read_json_gz(std::filesystem::path(REHEARSE_TEST_DATA) / "fx_splits.json.gz");
  return cases;
}

TEST(SplitBy, GivesFxsModulesOnRandomGraphs) {
  int compared = 0;
  for (std::size_t i = 0; i < recorded_splits().size(); ++i) {
    const json& recorded = recorded_splits()[i];
    SCOPED_TRACE("case " + std::to_string(i));
    const Example example(recorded);
    const json before = record_nodes(example.module.graph());
    if (recorded.contains("error")) {
      EXPECT_THROW(example.split(), GraphError);
      continue;
    }
    const SplitModule split = example.split();
    EXPECT_EQ(record_nodes(split.module->graph()), recorded.at("top"));
    ASSERT_EQ(split.partitions.size(), recorded.at("submods").size());
    for (const Partition& part : split.partitions) {
      EXPECT_EQ(record_nodes(part.module->graph()), recorded.at("submods").at(part.name)) << part.name;
      EXPECT_EQ(split.module->find_submodule(part.name), part.module);
      ++compared;
    }
    EXPECT_EQ(record_nodes(example.module.graph()), before) << "the original changed";
  }
  EXPECT_EQ(recorded_splits().size(), 240u);
  EXPECT_EQ(compared, 557);
}

TEST(SplitBy, PartitionsSayWhatTheyTakeAndGive) {
  GraphModule module;
  Graph& graph = module.graph();
  Node& x = graph.placeholder("x");
  Node& w = graph.get_attr("layer.w");
  module.set_attribute("layer.w", {});
  Node& a = graph.call_function("_operator.mul", {x, w});
  Node& b = graph.call_function("_operator.add", {a, x});
  graph.output(List{a, b});
  a.meta().set_value(TensorMeta{.sizes = {4}, .strides = {1}});
  const SplitModule split = split_by(module, [&](const Node& node) { return &node == &a ? 3 : 7; });
  ASSERT_EQ(split.partitions.size(), 2u);
  EXPECT_EQ(split.partitions[0].name, "submod_3");
  EXPECT_THAT(split.partitions[0].inputs, ElementsAre(&x, &w));
  EXPECT_THAT(split.partitions[0].outputs, ElementsAre(&a));
  EXPECT_EQ(split.partitions[1].id, 7);
  EXPECT_THAT(split.partitions[1].inputs, ElementsAre(&a, &x));
  EXPECT_EQ(split.module->graph().find("submod_3")->meta().value, a.meta().value);
  EXPECT_NE(split.module->find_attribute("layer.w"), nullptr);
}

TEST(SplitBy, ACycleIsNamed) {
  GraphModule module;
  Graph& graph = module.graph();
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x});
  Node& b = graph.call_function("f", {a});
  Node& c = graph.call_function("f", {b});
  graph.output(c);
  try {
    split_by(module, [&](const Node& node) { return &node == &b ? 1 : 0; });
    FAIL();
  } catch (const GraphError& error) {
    EXPECT_STREQ(error.what(), "partition: there is a cycle among partitions 0, 1");
  }
}

TEST(SplitBy, AutocastIsEnteredAgainWithItsKeywordArguments) {
  GraphModule module;
  Graph& graph = module.graph();
  Node& x = graph.placeholder("x");
  Node& enter = graph.call_function("torch.amp.autocast_mode._enter_autocast", {"cpu"}, {{"enabled", false}});
  Node& first = graph.call_function("f", {x});
  Node& second = graph.call_function("f", {first});
  graph.call_function("torch.amp.autocast_mode._exit_autocast", {enter});
  graph.output(second);
  int seen = 0;
  const SplitModule split = split_by(module, [&](const Node&) { return seen++ / 2; });
  ASSERT_EQ(split.partitions.size(), 2u);
  const Node* again = split.partitions[1].module->graph().find("_enter_autocast");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->kwargs(), enter.kwargs());
}

TEST(SplitBy, StatesThatCannotBeSetAgainAreRefused) {
  const auto error_with = [](auto&& build) -> std::string {
    GraphModule module;
    Node& x = module.graph().placeholder("x");
    build(module.graph(), x);
    int next = 10;
    try {
      split_by(module, [&](const Node&) { return next--; });
    } catch (const GraphError& error) {
      return error.what();
    }
    return "no error";
  };
  const char* enter = "torch.amp.autocast_mode._enter_autocast";
  const char* exit = "torch.amp.autocast_mode._exit_autocast";
  const char* grad = "torch._C._set_grad_enabled";
  EXPECT_THAT(error_with([&](Graph& g, Node&) { g.call_function(enter, {"cpu"}); }), HasSubstr("is never left"));
  EXPECT_THAT(error_with([&](Graph& g, Node& x) { g.call_function(enter, {x}); }), HasSubstr("with constants"));
  EXPECT_THAT(error_with([&](Graph& g, Node& x) { g.call_function(exit, {x}); }),
              HasSubstr("not the node of an autocast"));
  EXPECT_THAT(error_with([&](Graph& g, Node& x) { g.call_function(grad, {x}); }), HasSubstr("set by one bool"));
  EXPECT_THAT(error_with([&](Graph& g, Node& x) {
                g.call_function(grad, {true});
                g.call_function("f", {x});
              }),
              HasSubstr("node 'f', partition: is 9 after 10 of '_set_grad_enabled'"));
}

std::shared_ptr<GraphModule> leaf(const std::string& type) { return std::make_shared<GraphModule>(type); }

// With these names, fx overwrites one submodule by another, and then calls the wrong one.
TEST(SplitBy, NamesThatWouldClashAreKeptApart) {
  GraphModule module;
  for (const char* name : {"a.b", "a_b", "a_b_1", "body_x", "body.x", "submod_0"})
    module.set_submodule(name, leaf(name));
  module.set_submodule("alias.of", module.find_submodule("a.b"));
  module.set_attribute("submod_1", {});
  Graph& graph = module.graph();
  Node* value = &graph.placeholder("x");
  Node& body = graph.get_attr("body_x");
  Node& taken = graph.get_attr("submod_0");
  Node& weight = graph.get_attr("submod_1");
  for (const char* name : {"a.b", "a_b", "a_b_1", "a.b", "a_b", "alias.of", "body.x"}) {
    value = &graph.call_module(name, {*value, body});
  }
  value = &graph.call_function("f", {*value, weight, taken});
  graph.output(*value);
  const SplitModule split = split_by(module, [&](const Node& node) { return &node == value ? 1 : 0; });
  ASSERT_EQ(split.partitions.size(), 2u);
  EXPECT_EQ(split.partitions[0].name, "submod_0_1");
  EXPECT_EQ(split.partitions[1].name, "submod_1_1");
  EXPECT_EQ(split.module->find_submodule("submod_0"), module.find_submodule("submod_0"));
  EXPECT_NE(split.module->find_attribute("submod_1"), nullptr);
  std::vector<std::string> called;
  for (const Node& node : split.module->graph()) {
    if (node.op() == Op::CallModule) called.push_back(node.target());
  }
  EXPECT_THAT(called, ElementsAre("submod_0_1", "submod_1_1"));
  const GraphModule& part = *split.partitions[0].module;
  std::vector<std::string> types;
  for (const Node& node : part.graph()) {
    if (node.op() == Op::CallModule) types.push_back(node.target() + " " + part.find_submodule(node.target())->type());
  }
  EXPECT_THAT(types, ElementsAre("a_b a.b", "a_b_1 a_b", "a_b_1_1 a_b_1", "a_b a.b", "a_b_1 a_b", "alias_of a.b",
                                 "body_x_1 body.x"));
}

// Two inputs of a piece bring the same symbol, one as a number and one as a size.
TEST(SplitBy, SymbolOfAnotherPiece_IsNotBoundAgain) {
  const auto module = parse_graph_module(R"(graph_module "G" {
    %x = placeholder "x" []
    %item = call_function "torch.ops.aten.item.default" [%x] ; {"value": {"sym_int": sym("u0")}, "unbacked_bindings": ["u0"]}
    %zeros = call_function "torch.ops.aten.zeros.default" [[%item]] ; {"value": {"sizes": [sym("u0")], "strides": [1]}}
    %y = call_function "torch.ops.aten.add.Tensor" [%zeros, %item] ; {"value": {"sizes": [sym("u0")], "strides": [1]}}
    %output = output "output" [%y]
  })");
  EXPECT_NO_THROW(check_well_formed(*module));
  int piece = 0;
  const auto split = split_by(*module, [&](const Node&) { return piece++; });
  ASSERT_EQ(split.partitions.size(), 3u);
  for (const auto& partition : split.partitions) EXPECT_NO_THROW(check_well_formed(*partition.module));
  EXPECT_NO_THROW(check_well_formed(*split.module));
}

TEST(SplitBy, MalformedGraphsAreRefused) {
  const auto error_of = [](auto&& build) -> std::string {
    GraphModule module;
    build(module.graph(), module.graph().placeholder("x"));
    try {
      split_by(module, [](const Node&) { return 0; });
    } catch (const GraphError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of([](Graph& g, Node& x) {
              Node& a = g.call_function("f", {x});
              g.move_before(g.call_function("f", {a}), a);
            }),
            "node 'f_1', args: it uses 'f', which stands after it");
  EXPECT_EQ(error_of([](Graph& g, Node& x) {
              Node& late = g.placeholder("late");
              g.move_before(g.call_function("f", {x, late}), late);
            }),
            "node 'f', args: it uses 'late', which stands after it");
  EXPECT_EQ(error_of([](Graph& g, Node& x) { g.create_node(Op::Output, "output", {x, x}); }),
            "node 'output', args: an output has exactly one");
  EXPECT_EQ(error_of([](Graph& g, Node& x) {
              g.output(x);
              g.output(g.call_function("f", {x}));
            }),
            "node 'output', op: there is another output, 'output_1'");
  EXPECT_EQ(error_of([](Graph& g, Node& x) { g.output(List{x, g.get_attr("w")}); }),
            "node 'w', target: there is no attribute 'w'");
  EXPECT_EQ(error_of([](Graph& g, Node& x) { g.output(g.call_module("m", {x})); }),
            "node 'm', target: there is no submodule 'm'");
}

}  // namespace
}  // namespace rehearse::graph
