// SPDX-License-Identifier: BSD-3-Clause
// After every change, the order, users and names of a graph are right. Changes that would break them are refused.
#include <rehearse/graph/graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph) names.push_back(node.name());
  return names;
}

template <class Call>
GraphError error_of(Call&& call) {
  try {
    call();
  } catch (const GraphError& error) {
    return error;
  }
  ADD_FAILURE() << "no GraphError was thrown";
  return GraphError("", "", "none");
}

TEST(Graph, NodesStandInOrderOfCreationWithTheirNames) {
  Graph graph;
  Node& x = graph.placeholder("L_x_");
  Node& weight = graph.get_attr("layers.0.Weight");
  Node& y = graph.call_function("torch._C._nn.linear", {x, weight});
  graph.call_method("add_", {y, 1});
  graph.call_function("torch.ops.aten.add.Tensor", {y, y});
  graph.call_module("seq.0", {y});
  graph.output(List{y});
  EXPECT_THAT(names_of(graph),
              ElementsAre("l_x_", "layers_0_weight", "linear", "add_", "add_tensor", "seq_0", "output"));
  EXPECT_EQ(graph.size(), 7u);
  EXPECT_EQ(graph.find("linear"), &y);
  EXPECT_EQ(graph.find("none"), nullptr);
  EXPECT_EQ(graph.output_node(), graph.last());
  EXPECT_THAT(graph.placeholders(), ElementsAre(&x));
}

TEST(Graph, UsersAreEachOnceInOrderOfTheirBeginning) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x, List{x, Dict{{"k", x}}}}, {{"z", x}});
  Node& b = graph.call_function("f", {a}, {{"x", Slice(x, {}, {})}});
  EXPECT_THAT(x.users(), ElementsAre(&a, &b));
  EXPECT_THAT(a.input_nodes(), ElementsAre(&x));
  EXPECT_THAT(b.input_nodes(), ElementsAre(&a, &x));
  a.set_args({1});
  EXPECT_THAT(x.users(), ElementsAre(&b, &a)) << "a keeps its keyword, and began to use x anew";
  a.set_kwargs({});
  EXPECT_THAT(x.users(), ElementsAre(&b));
  b.set_args({x});
  EXPECT_THAT(a.users(), IsEmpty());
}

TEST(Graph, ANodeWithManyInputsHasEachOnce) {
  Graph graph;
  List all;
  for (int i = 0; i < 100; ++i) all.emplace_back(graph.placeholder("x"));
  const List twice = {all, all};
  Node& sum = graph.call_function("f", twice);
  ASSERT_EQ(sum.input_nodes().size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(sum.input_nodes()[i], all[i].node());
}

TEST(Graph, ReplaceAllUses_LeavesTheReplacementsOwnUse) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x});
  Node& b = graph.call_function("g", {x, List{x}});
  Node& clone = graph.call_function("clone", {x});
  EXPECT_THAT(x.replace_all_uses_with(clone), ElementsAre(&a, &b));
  EXPECT_THAT(x.users(), ElementsAre(&clone));
  EXPECT_THAT(clone.users(), ElementsAre(&a, &b));
  EXPECT_EQ(b.args()[1], Argument(List{clone}));
  EXPECT_THAT(x.replace_all_uses_with(x), IsEmpty());
  EXPECT_THAT(x.users(), ElementsAre(&clone));
}

TEST(Graph, InsertionPointsNest) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& out = graph.output(x);
  {
    const auto before_out = graph.inserting_before(out);
    Node& a = graph.call_function("a", {x});
    {
      const auto after_x = graph.inserting_after(x);
      graph.call_function("b", {x});
      graph.call_function("c", {x});
    }
    graph.call_function("d", {a});
  }
  graph.call_function("e", {});
  EXPECT_THAT(names_of(graph), ElementsAre("x", "b", "c", "a", "d", "output", "e"));
}

TEST(Graph, EraseAndMoveKeepTheChainWhole) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("a", {x});
  Node& b = graph.call_function("b", {x});
  graph.move_before(b, a);
  EXPECT_THAT(names_of(graph), ElementsAre("x", "b", "a"));
  graph.move_before(a, x);
  EXPECT_EQ(graph.first(), &a);
  graph.erase_node(a);
  EXPECT_THAT(names_of(graph), ElementsAre("x", "b"));
  EXPECT_THAT(x.users(), ElementsAre(&b));
  EXPECT_EQ(graph.last()->prev(), graph.first());
  EXPECT_EQ(graph.size(), 2u);
}

TEST(Graph, EraseOfAUsedNode_NamesTheUsers) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_function("a", {x});
  graph.call_function("b", {x});
  const GraphError error = error_of([&] { graph.erase_node(x); });
  EXPECT_STREQ(error.what(), "node 'x', users: cannot be erased while it has users: 'a', 'b'");
  EXPECT_EQ(graph.size(), 3u);
}

TEST(Graph, ErasingTheInsertionPoint_InsertsWhereItStood) {
  Graph graph;
  Node& a = graph.placeholder("a");
  graph.placeholder("b");
  const auto before_a = graph.inserting_before(a);
  graph.erase_node(a);
  graph.placeholder("c");
  EXPECT_THAT(names_of(graph), ElementsAre("c", "b"));
}

TEST(Graph, NodesOfAnotherGraphAreRefusedAndNothingChanges) {
  Graph graph;
  Graph other;
  Node& x = graph.placeholder("x");
  Node& y = graph.call_function("f", {x});
  Node& stranger = other.placeholder("s");
  const GraphError error = error_of([&] { y.set_args({x, List{stranger}}); });
  EXPECT_STREQ(error.what(), "node 'f', args: 's' is a node of another graph");
  EXPECT_EQ(Argument(y.args()), Argument(List{x}));
  EXPECT_THAT(x.users(), ElementsAre(&y));
  EXPECT_THAT(stranger.users(), IsEmpty());
  EXPECT_THROW(y.set_kwargs({{"k", stranger}}), GraphError);
  EXPECT_THROW(graph.call_function("f", {stranger}), GraphError);
  EXPECT_THROW(graph.call_function("f", {x}, {{"k", stranger}}), GraphError);
  EXPECT_THROW(x.replace_all_uses_with(stranger), GraphError);
  EXPECT_THAT(x.users(), ElementsAre(&y));
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_THROW(graph.erase_node(stranger), GraphError);
}

TEST(Graph, WrongArgumentsAreNamed) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_STREQ(error_of([&] { x.set_kwargs({{"k", 1}, {"k", 2}}); }).what(),
               "node 'x', kwargs.k: the name is given twice");
}

TEST(Op, NamesAreFxs) {
  for (const Op op : {Op::Placeholder, Op::GetAttr, Op::CallFunction, Op::CallMethod, Op::CallModule, Op::Output}) {
    EXPECT_EQ(op_from_string(to_string(op)), op);
  }
  EXPECT_EQ(to_string(Op::CallFunction), "call_function");
  EXPECT_EQ(op_from_string("call"), std::nullopt);
}

TEST(Graph, InsertionPointInAnotherGraph_IsRefused) {
  Graph graph, other;
  Node& x = other.placeholder("x");
  EXPECT_THROW((void)graph.inserting_before(x), GraphError);
  EXPECT_THROW((void)graph.inserting_after(x), GraphError);
}

TEST(Graph, ErasingANodeMovesAllInsertionPointsBeforeIt) {
  Graph graph;
  Node& a = graph.placeholder("a");
  Node& b = graph.placeholder("b");
  Node& c = graph.placeholder("c");
  {
    const auto outer = graph.inserting_before(b);
    {
      const auto inner = graph.inserting_before(a);
      const auto same = graph.inserting_before(b);
      graph.erase_node(b);
      graph.placeholder("d");
    }
    graph.placeholder("e");
    graph.erase_node(c);
    graph.placeholder("f");
  }
  std::string names;
  for (const Node& node : graph) names += node.name();
  EXPECT_EQ(names, "adef");
}

Argument nested(int depth) {
  Argument value = 1;
  for (int i = 0; i < depth; ++i) {
    value = i % 3 == 0   ? Argument(List{value})
            : i % 3 == 1 ? Argument(Dict{{"key", value}})
                         : Argument(Slice({}, value, {}));
  }
  return value;
}

TEST(Graph, ValuesAreNestedAsDeepAsTheLimit) {
  Graph graph;
  Node& node = graph.call_function("f", {nested(kMaxNesting)}, {{"key", nested(kMaxNesting)}});
  EXPECT_EQ(node.args()[0], nested(kMaxNesting));
  EXPECT_STREQ(error_of([&] { graph.call_function("f", {1, nested(kMaxNesting + 1)}); }).what(),
               "node 'f_1', args[1]: is nested deeper than 200");
  EXPECT_STREQ(error_of([&] { node.set_kwargs({{"key", nested(2 * kMaxNesting)}}); }).what(),
               "node 'f', kwargs.key: is nested deeper than 200");
  EXPECT_EQ(node.kwargs().at(0).second, nested(kMaxNesting));
  EXPECT_STREQ(error_of([&] { node.set_args({Dict{{"a", 1}, {"b", 2}, {"a", 3}}}); }).what(),
               "node 'f', args[0].a: the name is given twice");
}

}  // namespace
}  // namespace rehearse::graph
