// SPDX-License-Identifier: BSD-3-Clause
// Graphs that are nested too deep, or cannot run, are refused before anything walks over them.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/dead_code.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "core/graph/check/verify.h"

namespace rehearse::graph {
namespace {

using testing::HasSubstr;

std::string nested(const std::string& open, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

template <class Error, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Malformed, DeepNestingIsRefusedBeforeTheStackEnds) {
  const auto parse_error = [](const std::string& text) {
    return message_of<GraphError>([&] { parse_graph_module(text); });
  };
  const std::string head = "graph_module \"G\" {\n%x = placeholder \"x\" [";
  EXPECT_THAT(parse_error(head + nested("[", "]", 201) + "]\n}"), HasSubstr("args[0]: is nested deeper than 200"));
  EXPECT_THAT(parse_error(head + nested("[", "]", 1000000) + "]\n}"), HasSubstr("is nested deeper than 400"));
  EXPECT_THAT(parse_error(head + nested("slice(", ", 1, 1)", 1000000) + "]\n}"),
              HasSubstr("is nested deeper than 400"));
  EXPECT_THAT(parse_error("graph_module \"G\" {" + nested("submodule \"m\" graph_module \"G\" {", "}", 500000) + "}"),
              HasSubstr("is nested deeper than 201"));
  EXPECT_EQ(parse_error(head + nested("[", "]", 200) + "]\n}"), "no error");
  EXPECT_EQ(message_of<ImportError>([] { parse_exported_program(nested("[", "]", 1000000)); }),
            "model: is nested deeper than 2000");
  EXPECT_THAT(message_of<ImportError>([] { parse_exported_program("{\"schema_version\": 1e999}"); }),
              HasSubstr("model: is no JSON: "));
}

TEST(Malformed, ModulesThatAreNestedTooDeepAreRefusedByAllThatWalks) {
  const auto root = std::make_shared<GraphModule>();
  GraphModule* last = root.get();
  for (int i = 0; i < 100000; ++i) {
    const auto next = std::make_shared<GraphModule>();
    last->set_submodule("next", next);
    last = next.get();
  }
  root->graph().output(root->graph().placeholder("x"));
  const std::string refusal = "submodule: submodules stand in one another deeper than 200";
  EXPECT_EQ(message_of<GraphError>([&] { to_text(*root); }), refusal);
  EXPECT_EQ(message_of<GraphError>([&] { structural_hash(*root); }), refusal);
  EXPECT_EQ(message_of<GraphError>([&] { Interpreter interpreter(root); }), refusal);
  EXPECT_EQ(message_of<GraphError>([&] { eliminate_dead_code(*root); }), refusal);
  ASSERT_EQ(verify(*root).size(), 1u);
  EXPECT_EQ(to_string(verify(*root)[0]), "submodule: nested deeper than 200; nothing else was checked");
}

TEST(Malformed, ListsOfValuesAreRefusedBeforeTheyAreTooDeepToWalk) {
  ValueMeta value;
  const auto wrap = [&] {
    ValueMeta::List list;
    list.push_back(std::move(value));
    value = ValueMeta(std::move(list));
  };
  for (int i = 0; i < kMaxNesting; ++i) wrap();
  Graph graph;
  graph.placeholder("x").meta().set_value(value);
  EXPECT_EQ(message_of<GraphError>(wrap), "value: lists stand in one another deeper than 200");
  const std::string head = "graph_module \"G\" {\n%x = placeholder \"x\" [] ; {\"value\": ";
  EXPECT_NO_THROW(to_text(*parse_graph_module(head + nested("[", "]", 200) + "}\n}")));
  EXPECT_THAT(message_of<GraphError>([&] { parse_graph_module(head + nested("[", "]", 201) + "}\n}"); }),
              HasSubstr("value: lists stand in one another deeper than 200"));
}

// x + 1, below `levels` nested modules. Each outer module names the next module four times: it calls the next module
// twice, and then passes it to torch.cond as both bodies. torch.cond runs one body.
std::shared_ptr<GraphModule> tripled(int levels) {
  auto module = std::make_shared<GraphModule>();
  module->graph().output(module->graph().call_function("_operator.add", {module->graph().placeholder("x"), 1}));
  for (int i = 0; i < levels; ++i) {
    const auto outer = std::make_shared<GraphModule>();
    outer->set_submodule("inner", module);
    Graph& graph = outer->graph();
    Node& twice = graph.call_module("inner", {graph.call_module("inner", {graph.placeholder("x")})});
    Node& body = graph.get_attr("inner");
    graph.output(graph.call_function("torch.ops.higher_order.cond", {true, body, body, List{twice}}));
    module = outer;
  }
  return module;
}

TEST(Malformed, SharedModulesAreReadOnceByTheInterpreter) {
  EXPECT_EQ(Interpreter(tripled(3)).run({0}).at(0).toInt(), 27);
  const Interpreter deep(tripled(40));  // a naive walk would read 4 to the power of 40 modules
}

TEST(Malformed, GraphsThatCannotRunAreRefusedByTheInterpreter) {
  const auto error_of = [](const std::function<void(Graph&, Node&)>& build) {
    const auto module = std::make_shared<GraphModule>();
    build(module->graph(), module->graph().placeholder("x"));
    return message_of<GraphError>([&] { Interpreter interpreter(module); });
  };
  EXPECT_EQ(error_of([](Graph& g, Node& x) {
              Node& a = g.call_function("torch.ops.aten.neg.default", {x}, {}, "a");
              g.move_before(g.call_function("torch.ops.aten.neg.default", {a}, {}, "b"), a);
            }),
            "node 'b', args: 'a' does not stand before it");
  EXPECT_EQ(error_of([](Graph& g, Node& x) {
              g.output(x);
              g.output(x);
            }),
            "node 'output_1', op: there is another output, 'output'");
  EXPECT_EQ(error_of([](Graph& g, Node&) { g.create_node(Op::Output, "output"); }),
            "node 'output', args: an output has exactly one");
  EXPECT_EQ(message_of<GraphError>([] { Interpreter interpreter(nullptr); }), "module: is null");
}

}  // namespace
}  // namespace rehearse::graph
