// SPDX-License-Identifier: BSD-3-Clause
// The verifier is silent on real graphs and on splits of them, and names each problem of a wrong graph.
#include "core/graph/check/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/split.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/dead_code.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "core/graph/recorded_graph.h"

namespace rehearse::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> problems_of(const GraphModule& module) {
  std::vector<std::string> texts;
  for (const Problem& problem : verify(module)) texts.push_back(to_string(problem));
  return texts;
}

std::vector<std::string> problems_of(const std::string& lines) {
  return problems_of(*parse_graph_module("graph_module \"G\" {\n" + lines + "\n}"));
}

ExportedProgram bert_base() {
  const auto file = std::filesystem::path(REHEARSE_TEST_DATA) / "truth/bert_base_mlm_model.json.gz";
  return parse_exported_program(read_json_gz(file).dump());
}

TEST(Verify, RealProgramsAreWellFormed) {
  for (const char* name : {"dynamic", "lists", "constants", "constants_functional", "mutation", "cond", "while_loop",
                           "modes", "unbacked", "scalars"}) {
    const ExportedProgram program = load_pt2(fmt::format("{}/pt2/{}.pt2", REHEARSE_TEST_DATA, name));
    EXPECT_THAT(problems_of(*program.module), IsEmpty()) << name;
  }
  const ExportedProgram bert = bert_base();
  EXPECT_THAT(problems_of(*bert.module), IsEmpty());
  int seen = 0;
  const SplitModule split = split_by(*bert.module, [&](const Node&) { return seen++ / 25; });
  EXPECT_THAT(problems_of(*split.module), IsEmpty());
}

TEST(Verify, TopologyIsNamed) {
  GraphModule module;
  Graph& graph = module.graph();
  Node& x = graph.placeholder("x");
  Node& y = graph.call_function("f", {x});
  Node& out = graph.output(y);
  EXPECT_THAT(problems_of(module), IsEmpty());
  graph.move_before(y, x);
  EXPECT_THAT(problems_of(module), ElementsAre("node 'f', args: 'x' does not stand before it"));
  graph.move_before(x, y);
  graph.move_before(out, x);
  EXPECT_THAT(problems_of(module),
              ElementsAre("node 'output', args: 'f' does not stand before it", "output: must be the last node"));
  EXPECT_THAT(problems_of("%x = placeholder \"x\" []"), ElementsAre("output: there must be one, and there are 0"));
}

TEST(Verify, UnbackedFloatsAreBoundToo) {
  EXPECT_THAT(problems_of(R"(
    %x = placeholder "x" []
    %a = call_function "f" [%x] ; {"value": {"sym_float": sym("zuf0")}, "unbacked_bindings": ["zuf0"]}
    %b = call_function "f" [%a] ; {"value": {"sym_float": sym("zuf0 + zuf1")}}
    %output = output "output" [%b])"),
              ElementsAre("node 'b', meta.value: no node before it binds zuf1"));
}

TEST(Verify, TargetsAndArgumentsAreNamed) {
  EXPECT_THAT(
      problems_of(R"(%x = placeholder "x" [1, 2]
    %a = get_attr "w" [1]
    %b = call_module "m" [%x]
    %c = call_method "t" []
    %d = call_function "" [%x]
    %output = output "output" [])"),
      ElementsAre("node 'x', args: a placeholder has at most one, its default",
                  "node 'a', args: an attribute takes none", "node 'a', target: there is no attribute or submodule 'w'",
                  "node 'b', target: there is no submodule 'm'", "node 'c', args: a method needs a self",
                  "node 'd', target: is empty", "node 'output', args: an output has exactly one"));
}

TEST(Verify, SchemasAreChecked) {
  const std::vector<std::string> problems = problems_of(R"(%x = placeholder "x" []
    %a = call_function "torch.ops.aten.add.Tensor" [%x]
    %b = call_function "torch.ops.aten.relu.default" [%x, %x]
    %c = call_function "torch.ops.aten.sum.dim_IntList" [%x, ["one"]] {"keepdim": true}
    %d = call_function "torch.ops.aten.ones.default" [[sym("s0"), 2]]
    %e = call_function "torch.ops.aten.relu.default" [%x] {"inplace": true}
    %output = output "output" [%a])");
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_THAT(problems[0], testing::StartsWith("node 'a', other: is missing; the operator is aten::add.Tensor("));
  EXPECT_THAT(problems[1], testing::StartsWith("node 'b', args: has arguments that the operator does not take"));
  EXPECT_EQ(problems[2], "node 'c', args[1] (dim): must be int, and is String");
  EXPECT_THAT(problems[3], testing::StartsWith("node 'e', args: has arguments"));
}

TEST(Verify, MetadataIsChecked) {
  EXPECT_THAT(
      problems_of(
          R"(%x = placeholder "x" [] ; {"value": {"sizes": [-1, sym("2"), sym("?")], "strides": [1]}, "unbacked_bindings": ["u0"]}
    %a = call_method "t" [%x] ; {"value": {"sizes": [sym("u0*u1")], "strides": [1]}, "unbacked_bindings": ["u0"]}
    %b = call_function "f" [%x] ; {"value": [{"sym_int": sym("s0")}]}
    %c = call_function "_operator.getitem" [%b, 0] ; {"value": {"sym_int": sym("s1")}}
    %d = call_function "_operator.getitem" [%b, 1] ; {"value": {"sym_int": sym("s0")}}
    %output = output "output" [%a])"),
      ElementsAre(
          "node 'x', meta.value: has 3 sizes and 1 strides", "node 'x', meta.value.sizes[0]: is -1, less than 0",
          "node 'x', meta.value.sizes[2]: '?' is neither a number nor has it symbols",
          "node 'a', meta.unbacked_bindings: u0 is bound before", "node 'a', meta.value: no node before it binds u1",
          "node 'c', meta.value: is not what 'b' says of its item 0",
          "node 'd', args[1]: 1 is out of range: 'b' has 1 items"));
}

TEST(Verify, SubmodulesAreCheckedAndAllProblemsThrown) {
  const auto module = parse_graph_module(R"(graph_module "G" {
    submodule "m" graph_module "G" {
      %a = get_attr "w" []
    }
    submodule "leaf" graph_module "Linear" {
    }
    %x = placeholder "x" []
    %b = get_attr "v" []
    %output = output "output" [%x]
  })");
  try {
    check_well_formed(*module);
    FAIL();
  } catch (const GraphError& error) {
    EXPECT_STREQ(error.what(),
                 "node 'b', target: there is no attribute or submodule 'v'\n"
                 "node 'm/a', target: there is no attribute or submodule 'w'\n"
                 "node 'm/', output: there must be one, and there are 0");
    EXPECT_EQ(error.node(), "b");
  }
}

// Wide lists and shared submodules must take linear time. A naive walk takes quadratic time, or doubles its time with
// each level.
TEST(Verify, WideListsAndSharedSubmodulesAreWalkedOnce) {
  GraphModule module;
  List all;
  Node& x = module.graph().placeholder("x");
  for (int i = 0; i < 50000; ++i) all.push_back(module.graph().call_function("f", {x}));
  module.graph().output(all);
  EXPECT_THAT(problems_of(module), IsEmpty());

  auto shared = std::make_shared<GraphModule>();
  shared->graph().get_attr("w");
  for (int i = 0; i < 60; ++i) {
    auto outer = std::make_shared<GraphModule>();
    outer->graph().output(outer->graph().call_module("left", {outer->graph().placeholder("x")}));
    outer->set_submodule("left", shared);
    outer->set_submodule("right", shared);
    shared = outer;
  }
  const std::vector<Problem> problems = verify(*shared);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].message, "there is no attribute or submodule 'w'");
  EXPECT_EQ(problems[1].message, "there must be one, and there are 0");
  EXPECT_EQ(structural_hash(*shared), structural_hash(*copy_graph_module(*shared)));
  shared->graph().erase_node(*shared->graph().output_node());
  EXPECT_EQ(eliminate_dead_code(*shared), 1u) << "a call of a body that only fetches an attribute";
}

}  // namespace
}  // namespace rehearse::graph
