// SPDX-License-Identifier: BSD-3-Clause
// A module finds attributes and submodules by qualified name, and copies share everything but nodes.
#include <rehearse/graph/graph_module.h>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

Attribute attribute_of(std::int64_t size) {
  Attribute attribute;
  attribute.meta.sizes = {size};
  return attribute;
}

TEST(GraphModule, QualifiedNamesGoThroughSubmodules) {
  GraphModule root;
  auto inner = std::make_shared<GraphModule>("Linear");
  inner->set_attribute("weight", attribute_of(3));
  auto middle = std::make_shared<GraphModule>();
  middle->set_submodule("0", inner);
  root.set_submodule("layers.seq", middle);
  root.set_attribute("layers.bias", attribute_of(2));
  EXPECT_EQ(root.find_attribute("layers.bias")->meta.sizes[0], SymInt(2));
  EXPECT_EQ(root.find_attribute("layers.seq.0.weight")->meta.sizes[0], SymInt(3));
  EXPECT_EQ(root.find_submodule("layers.seq.0"), inner);
  EXPECT_EQ(root.find_submodule("layers.seq"), middle);
  EXPECT_EQ(root.find_attribute("layers.seq.0.none"), nullptr);
  EXPECT_EQ(root.find_attribute("weight"), nullptr);
  EXPECT_EQ(root.find_submodule("layers"), nullptr);
  EXPECT_TRUE(inner->is_leaf());
  EXPECT_EQ(inner->type(), "Linear");
}

TEST(GraphModule, SettingANameAgainReplaces_RemovingKeepsTheOthers) {
  GraphModule root;
  root.set_attribute("a", attribute_of(1));
  root.set_attribute("b", attribute_of(2));
  root.set_attribute("a", attribute_of(3));
  ASSERT_EQ(root.attributes().size(), 2u);
  EXPECT_EQ(root.attributes()[0].second.meta.sizes[0], SymInt(3));
  const auto one = std::make_shared<GraphModule>("One");
  const auto two = std::make_shared<GraphModule>("Two");
  root.set_submodule("m", one);
  root.set_submodule("n", two);
  root.remove_submodule("m");
  root.remove_submodule("none");
  EXPECT_EQ(root.find_submodule("m"), nullptr);
  EXPECT_EQ(root.find_submodule("n"), two);
  EXPECT_THROW(root.set_attribute("", attribute_of(1)), GraphError);
  EXPECT_THROW(root.set_attribute("n", attribute_of(1)), GraphError);
  EXPECT_THROW(root.set_submodule("a", one), GraphError);
  EXPECT_THROW(root.set_submodule("x", nullptr), GraphError);
}

TEST(GraphModule, ACopyHasItsOwnNodesAndSharesTheRest) {
  GraphModule root;
  Node& x = root.graph().placeholder("x");
  Node& w = root.graph().get_attr("w");
  Node& y = root.graph().call_function("torch.ops.aten.mul.Tensor", {x, w}, {{"k", List{x}}}, "y");
  y.meta().set_value(TensorMeta{.sizes = {SymExpr{"s0"}}, .strides = {1}});
  root.graph().output(List{y});
  Attribute weight;
  weight.tensor = at::ones({3});
  root.set_attribute("w", weight);

  const auto copy = copy_graph_module(root);
  ASSERT_EQ(copy->graph().size(), 4u);
  Node* copied = copy->graph().find("y");
  ASSERT_NE(copied, nullptr);
  EXPECT_NE(copied, &y);
  EXPECT_EQ(copied->args()[0].node(), copy->graph().find("x"));
  EXPECT_EQ(copied->kwarg("k")->as<List>()[0].node(), copy->graph().find("x"));
  EXPECT_EQ(copied->meta().value, y.meta().value);
  EXPECT_TRUE(copy->find_attribute("w")->tensor.is_same(weight.tensor));
  copy->graph().erase_node(*copy->graph().output_node());
  EXPECT_EQ(root.graph().size(), 4u);
}

TEST(GraphModule, CyclesOfSubmodulesAreRefused_SharingIsNot) {
  auto root = std::make_shared<GraphModule>();
  auto middle = std::make_shared<GraphModule>();
  auto inner = std::make_shared<GraphModule>();
  root->set_submodule("left", middle);
  root->set_submodule("right", middle);
  middle->set_submodule("layers.0", inner);
  const auto refusal_of = [](GraphModule& module, const std::shared_ptr<GraphModule>& submodule) -> std::string {
    try {
      module.set_submodule("up", submodule);
    } catch (const GraphError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal_of(*inner, root), "submodule up: it contains this module, as 'left.layers.0'");
  EXPECT_EQ(refusal_of(*inner, middle), "submodule up: it contains this module, as 'layers.0'");
  EXPECT_EQ(refusal_of(*inner, inner), "submodule up: a module cannot contain itself");
  EXPECT_TRUE(inner->submodules().empty());
  EXPECT_EQ(refusal_of(*root, inner), "no error");
}

TEST(GraphModule, ALongChainOfModulesGoesWithoutAnOverflow) {
  auto root = std::make_shared<GraphModule>();
  GraphModule* last = root.get();
  for (int i = 0; i < 200000; ++i) {
    auto next = std::make_shared<GraphModule>();
    last->set_submodule("next", next);
    last = next.get();
  }
  std::weak_ptr<GraphModule> second = root->find_submodule("next");
  root.reset();
  EXPECT_TRUE(second.expired());
}

TEST(GraphModule, AGraphOutOfOrderIsNotCopied) {
  GraphModule module;
  Node& x = module.graph().placeholder("x");
  Node& y = module.graph().call_function("f", {x});
  module.graph().move_before(y, x);
  try {
    copy_graph_module(module);
    FAIL();
  } catch (const GraphError& error) {
    EXPECT_STREQ(error.what(), "node 'x', users: a node that uses it stands before it");
  }
}

}  // namespace
}  // namespace rehearse::graph
