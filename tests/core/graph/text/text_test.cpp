// SPDX-License-Identifier: BSD-3-Clause
// Parsing a module's text gives the same module again: for random graphs with every kind of argument and metadata, and
// for BERT.
#include <rehearse/graph/text.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse/graph/exported_program.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "core/graph/recorded_graph.h"

namespace rehearse::graph {
namespace {

double any_double() {
  const double special[] = {0.0,
                            -0.0,
                            1.0,
                            1e300,
                            5e-324,
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()};
  const auto choice = *rc::gen::inRange<std::size_t>(0, 12);
  return choice < std::size(special) ? special[choice] : *rc::gen::arbitrary<double>();
}

std::string any_text() {
  std::string text = *rc::gen::arbitrary<std::string>();
  for (char& c : text) c = static_cast<char>(c & 0x7f);
  return text;
}

Argument any_argument(const std::vector<Node*>& nodes, int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 16 : 12)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return any_double();
    case 4:
      return std::complex<double>(any_double(), any_double());
    case 5:
      return any_text();
    case 6:
      return SymExpr{any_text()};
    case 7:
      return Ellipsis{};
    case 8:
      return *rc::gen::element(c10::kFloat, c10::kBFloat16, c10::kBool, c10::kComplexDouble, c10::kLong);
    case 9:
      return *rc::gen::element(c10::Device("cpu"), c10::Device("cuda:1"), c10::Device("meta"));
    case 10:
      return *rc::gen::element(c10::kStrided, c10::kSparse, c10::kSparseCsr);
    case 11:
      return *rc::gen::element(c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast);
    case 12:
      return nodes.empty() ? Argument() : Argument(*rc::gen::elementOf(nodes));
    case 13:
      return Slice(any_argument(nodes, 0), any_argument(nodes, 0), any_argument(nodes, depth - 1));
    case 14: {
      Dict dict;
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
        dict.emplace_back(any_text() + std::to_string(i), any_argument(nodes, depth - 1));
      return dict;
    }
    default: {
      List list;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(any_argument(nodes, depth - 1));
      return list;
    }
  }
}

SymInt any_size() {
  if (*rc::gen::arbitrary<bool>()) return SymExpr{any_text()};
  return *rc::gen::arbitrary<std::int64_t>();
}

TensorMeta any_tensor() {
  TensorMeta tensor;
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    tensor.sizes.push_back(any_size());
    tensor.strides.push_back(any_size());
  }
  tensor.storage_offset = any_size();
  tensor.dtype = *rc::gen::element(c10::kHalf, c10::kInt, c10::kFloat8_e4m3fn);
  tensor.device = *rc::gen::element(c10::Device("cpu"), c10::Device("cuda:0"));
  tensor.layout = *rc::gen::element(c10::kStrided, c10::kMkldnn);
  tensor.requires_grad = *rc::gen::arbitrary<bool>();
  tensor.is_parameter = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) tensor.storage_nbytes = any_size();
  return tensor;
}

ValueMeta any_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 4 : 3)) {
    case 0:
      return {};
    case 1:
      return any_tensor();
    case 2:
      return SymScalarMeta{
          *rc::gen::element(SymScalarMeta::Kind::Int, SymScalarMeta::Kind::Float, SymScalarMeta::Kind::Bool),
          {any_text()}};
    default: {
      ValueMeta::List items;
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) items.push_back(any_value(depth - 1));
      return items;
    }
  }
}

void fill(GraphModule& module, int depth) {
  std::vector<Node*> nodes;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    const Op op =
        *rc::gen::element(Op::Placeholder, Op::GetAttr, Op::CallFunction, Op::CallMethod, Op::CallModule, Op::Output);
    List args;
    for (int k = *rc::gen::inRange(0, 3); k > 0; --k) args.push_back(any_argument(nodes, 2));
    Dict kwargs;
    for (int k = *rc::gen::inRange(0, 3); k > 0; --k)
      kwargs.emplace_back("k" + std::to_string(k), any_argument(nodes, 2));
    Node& node = module.graph().create_node(op, "t" + any_text(), std::move(args), std::move(kwargs), any_text());
    if (*rc::gen::arbitrary<bool>()) node.meta().set_value(any_value(2));
    if (*rc::gen::arbitrary<bool>()) {
      Origin origin{any_text(), any_text(), any_text()};
      if (*rc::gen::arbitrary<bool>()) origin.label = any_text();
      node.meta().set_origin(std::move(origin));
    }
    if (*rc::gen::arbitrary<bool>()) node.meta().unbacked_bindings = {any_text(), "u0"};
    node.meta().ddp_ignored = *rc::gen::arbitrary<bool>();
    nodes.push_back(&node);
  }
  for (int i = *rc::gen::inRange(0, 2); i > 0; --i) {
    module.set_attribute("a" + any_text(), {any_tensor(), {}, *rc::gen::arbitrary<bool>()});
  }
  for (int i = depth > 0 ? *rc::gen::inRange(0, 2) : 0; i > 0; --i) {
    auto submodule = std::make_shared<GraphModule>(any_text());
    fill(*submodule, depth - 1);
    module.set_submodule("m" + any_text(), submodule);
  }
}

void expect_same_nodes(const GraphModule& left, const GraphModule& right) {
  RC_ASSERT(left.graph().size() == right.graph().size());
  for (auto l = left.graph().begin(), r = right.graph().begin(); l != left.graph().end(); ++l, ++r) {
    RC_ASSERT(l->name() == r->name());
    RC_ASSERT(l->meta() == r->meta());
    RC_ASSERT(l->users().size() == r->users().size());
  }
}

TEST(Text, RandomModulesComeBack) {
  const bool holds = rc::check("parse(text) has the same text, nodes and metadata", [] {
    GraphModule module(any_text());
    fill(module, 2);
    const std::string text = to_text(module);
    const auto parsed = parse_graph_module(text);
    RC_ASSERT(to_text(*parsed) == text);
    RC_ASSERT(structural_hash(*parsed) == structural_hash(module));
    expect_same_nodes(module, *parsed);
  });
  EXPECT_TRUE(holds);
}

TEST(Text, BertComesBack) {
  const auto document = read_json_gz(std::filesystem::path(REHEARSE_TEST_DATA) / "truth/bert_base_mlm_model.json.gz");
  const ExportedProgram program = parse_exported_program(document.dump());
  const std::string text = to_text(*program.module);
  const auto parsed = parse_graph_module(text);
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(structural_hash(*parsed), structural_hash(*program.module));
}

TEST(Text, IsWhatTheHeaderShows) {
  const std::string text = R"(graph_module "GraphModule" {
  attribute "w" {"dtype": dtype(Float), "sizes": [4], "strides": [1]}
  %x = placeholder "x" [] ; {"value": {"dtype": dtype(Float), "sizes": [sym("s0"), 4], "strides": [4, 1]}}
  %w = get_attr "w" []
  %mul = call_function "torch.ops.aten.mul.Tensor" [%x, %w]
  %output = output "output" [[%mul]]
}
)";
  const auto module = parse_graph_module(text);
  EXPECT_EQ(to_text(*module), text);
  EXPECT_EQ(module->graph().find("mul")->input_nodes().size(), 2u);
  EXPECT_EQ(to_text(Argument(List{1.0, 1e20, "a\"\n", Slice({}, 8, {})})),
            "[1.0, 1e+20, \"a\\\"\\n\", slice(none, 8, none)]");
}

TEST(Dot, HasABoxANodeAndAnArrowAUse) {
  Graph graph;
  Node& x = graph.placeholder("L[\"x\"]", "x");
  x.meta().set_value(TensorMeta{.sizes = {SymExpr{"s0"}, 4}, .strides = {4, 1}});
  Node& y = graph.call_function("torch.ops.aten.relu.default", {x}, {}, "y");
  graph.output(List{y, x});
  EXPECT_EQ(to_dot(graph, "net"), R"(digraph "net" {
  "x" [shape=ellipse, label="x\nL[\"x\"]\nFloat[s0, 4]"];
  "y" [shape=box, label="y\ntorch.ops.aten.relu.default"];
  "output" [shape=ellipse, label="output\noutput"];
  "x" -> "y";
  "y" -> "output";
  "x" -> "output";
}
)");
}

}  // namespace
}  // namespace rehearse::graph
