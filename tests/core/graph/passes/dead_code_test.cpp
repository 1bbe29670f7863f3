// SPDX-License-Identifier: BSD-3-Clause
// Dead code is removed, but no node that has effects or binds a symbol that other nodes need.
#include <rehearse_internal/graph/dead_code.h>

#include <gtest/gtest.h>

#include <rehearse/graph/text.h>

namespace rehearse::graph {
namespace {

TEST(DeadCode, OnlyPureNodesGo) {
  const auto module = parse_graph_module(R"(graph_module "G" {
    submodule "pure" graph_module "G" {
      %x = placeholder "x" []
      %y = call_function "torch.ops.aten.neg.default" [%x]
      %output = output "output" [%y]
    }
    submodule "impure" graph_module "G" {
      %x = placeholder "x" []
      %y = call_function "torch.ops.aten.neg_.default" [%x]
      %output = output "output" [%y]
    }
    %x = placeholder "x" []
    %unused_input = placeholder "z" []
    %a = call_function "torch.ops.aten.relu.default" [%x]
    %b = call_function "torch.ops.aten.add.Tensor" [%a, 1]
    %random = call_function "torch.ops.aten.bernoulli.default" [%x]
    %inplace = call_function "torch.ops.aten.relu_.default" [%x]
    %size = call_function "torch.ops.aten.sym_size.int" [%x, 0]
    %ge = call_function "_operator.ge" [%size, 2]
    %check = call_function "torch.ops.aten._assert_scalar.default" [%ge, "too small"]
    %le = call_function "_operator.le" [%size, 2]
    %unknown = call_function "my.function" [%x]
    %method = call_method "sin" [%x]
    %pure = get_attr "pure" []
    %impure = get_attr "impure" []
    %cond = call_function "torch.ops.higher_order.cond" [%ge, %pure, %pure, [%x]]
    %cond_1 = call_function "torch.ops.higher_order.cond" [%ge, %pure, %impure, [%x]]
    %m = call_module "pure" [%x]
    %n = call_module "impure" [%x]
    %kept = call_function "torch.ops.aten.neg.default" [%x]
    %output = output "output" [[%kept]]
  })");
  EXPECT_EQ(eliminate_dead_code(*module), 5u);
  std::string left;
  for (const Node& node : module->graph()) left += node.name() + " ";
  EXPECT_EQ(left, "x unused_input random inplace size ge check unknown method pure impure cond_1 n kept output ");
  EXPECT_EQ(eliminate_dead_code(*module), 0u);
}

TEST(DeadCode, EffectsThatNoSchemaMarks_Stay) {
  const auto module = parse_graph_module(R"(graph_module "G" {
    %x = placeholder "x" []
    %reduced = call_function "torch.ops._c10d_functional.all_reduce.default" [%x, "sum", "world"]
    %waited = call_function "torch.ops._c10d_functional.wait_tensor.default" [%x]
    %norm = call_function "torch.ops.aten.batch_norm.default" [%x]
    %checked = call_function "torch.ops.aten._functional_assert_scalar.default" [%x, "must hold", %x]
    %shared = call_function "torch.ops.symm_mem.one_shot_all_reduce.default" [%x, "sum", "world"]
    %printed = call_function "torch.ops.higher_order.print" ["text"]
    %kernel = call_function "torch.ops.higher_order.triton_kernel_wrapper_mutation" [%x]
    %output = output "output" [%x]
  })");
  EXPECT_EQ(eliminate_dead_code(*module), 0u);
}

// A symbol in a size or an expression does not count as a use of the node that binds it.
TEST(DeadCode, BindersOfSymbolsThatAreStillNeeded_Stay) {
  const auto left_of = [](const std::string& users) {
    const auto module = parse_graph_module(R"(graph_module "G" {
      %x = placeholder "x" []
      %item = call_function "torch.ops.aten.item.default" [%x] ; {"value": {"sym_int": sym("u0")}, "unbacked_bindings": ["u0"]}
      %item_1 = call_function "torch.ops.aten.item.default" [%x] ; {"value": {"sym_int": sym("u1")}, "unbacked_bindings": ["u1"]}
      )" + users + R"(
      %output = output "output" [[%x]]
    })");
    eliminate_dead_code(*module);
    std::string left;
    for (const Node& node : module->graph()) left += node.name() + " ";
    return left;
  };
  EXPECT_EQ(left_of(""), "x output ");
  EXPECT_EQ(left_of(R"(%k = call_method "f_" [%x, sym("u0*2")])"), "x item k output ");
  EXPECT_EQ(left_of(R"(%k = call_method "f_" [%x] {"size": [slice(none, sym("u1"), none)]})"), "x item_1 k output ");
  EXPECT_EQ(left_of(R"(%k = call_method "f_" [%x] ; {"value": {"sizes": [sym("u0 + u1")], "strides": [1]}})"),
            "x item item_1 k output ");
  EXPECT_EQ(
      left_of(
          R"(%k = call_function "torch.ops.aten.neg.default" [%x] ; {"value": {"sizes": [sym("u0")], "strides": [1]}})"),
      "x output ");
}

}  // namespace
}  // namespace rehearse::graph
