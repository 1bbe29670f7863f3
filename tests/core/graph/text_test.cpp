// SPDX-License-Identifier: BSD-3-Clause
// Text, parsed, gives the same module again: for random graphs with every kind of argument and metadata, and for BERT.
#include <rehearse/graph/text.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/structural_hash.h>

#include "core/graph/recorded_graph.h"

namespace rehearse::graph {
namespace {

using testing::HasSubstr;

double any_double() {
  const double special[] = {0.0, -0.0, 1.0, 1e300, 5e-324, std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
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
    case 0: return {};
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<std::int64_t>();
    case 3: return any_double();
    case 4: return std::complex<double>(any_double(), any_double());
    case 5: return any_text();
    case 6: return SymExpr{any_text()};
    case 7: return Ellipsis{};
    case 8: return *rc::gen::element(c10::kFloat, c10::kBFloat16, c10::kBool, c10::kComplexDouble, c10::kLong);
    case 9: return *rc::gen::element(c10::Device("cpu"), c10::Device("cuda:1"), c10::Device("meta"));
    case 10: return *rc::gen::element(c10::kStrided, c10::kSparse, c10::kSparseCsr);
    case 11: return *rc::gen::element(c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast);
    case 12: return nodes.empty() ? Argument() : Argument(*rc::gen::elementOf(nodes));
    case 13: return Slice(any_argument(nodes, 0), any_argument(nodes, 0), any_argument(nodes, depth - 1));
    case 14: {
      Dict dict;
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) dict.emplace_back(any_text() + std::to_string(i), any_argument(nodes, depth - 1));
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
    case 0: return {};
    case 1: return any_tensor();
    case 2: return SymScalarMeta{*rc::gen::element(SymScalarMeta::Kind::Int, SymScalarMeta::Kind::Float, SymScalarMeta::Kind::Bool), {any_text()}};
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
    const Op op = *rc::gen::element(Op::Placeholder, Op::GetAttr, Op::CallFunction, Op::CallMethod, Op::CallModule, Op::Output);
    List args;
    for (int k = *rc::gen::inRange(0, 3); k > 0; --k) args.push_back(any_argument(nodes, 2));
    Dict kwargs;
    for (int k = *rc::gen::inRange(0, 3); k > 0; --k) kwargs.emplace_back("k" + std::to_string(k), any_argument(nodes, 2));
    Node& node = module.graph().create_node(op, "t" + any_text(), std::move(args), std::move(kwargs), any_text());
    if (*rc::gen::arbitrary<bool>()) node.meta().set_value(any_value(2));
    if (*rc::gen::arbitrary<bool>()) node.meta().set_origin({any_text(), any_text(), any_text()});
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
  EXPECT_EQ(to_text(Argument(List{1.0, 1e20, "a\"\n", Slice({}, 8, {})})), "[1.0, 1e+20, \"a\\\"\\n\", slice(none, 8, none)]");
}

std::string error_of(const std::string& text) {
  try {
    parse_graph_module(text);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Text, ErrorsNameThePlace) {
  const std::string head = "graph_module \"G\" {\n";
  EXPECT_EQ(error_of("graph"), "line 1, column 1: there must be 'graph_module' here");
  EXPECT_EQ(error_of(head + "  %x = what \"x\" []\n}"), "line 2, column 8: 'what' is no op");
  EXPECT_EQ(error_of(head + "  %y = call_method \"f\" [%x]\n}"), "line 2, column 26: there is no node 'x' before this");
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" []\n%x = placeholder \"x\" []\n}"), HasSubstr("node 'x', name: is taken"));
  EXPECT_THAT(error_of(head + "%sum = placeholder \"x\" []}"), HasSubstr("name: is taken, reserved"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [12z]}"), HasSubstr("'12z' is no value"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [dtype(Flot)]}"), HasSubstr("'Flot' is no dtype"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [device(\"tpu9\")]}"), HasSubstr("'tpu9' is no device"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [slice(1, 2)]}"), HasSubstr("slice has not so many parts"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [] ; {\"valu\": 1}}"), HasSubstr("\"valu\" is no key"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [] ; {\"value\": {\"sizes\": 3}}}"), HasSubstr("\"sizes\" must be a list"));
  EXPECT_THAT(error_of(head + "attribute \"w\" {\"dtype\": 1}}"), HasSubstr("\"dtype\" must be dtype(...)"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x"), HasSubstr("the string has no end"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"\\q\" []}"), HasSubstr("unknown escape"));
  EXPECT_THAT(error_of(head), HasSubstr("there must be '%' here"));
  EXPECT_THAT(error_of(head + "} x"), HasSubstr("nothing after the module"));
}

// Of an argument, by way of a node.
Argument there_and_back(const Argument& argument) {
  GraphModule module;
  module.graph().call_function("f", {argument});
  return parse_graph_module(to_text(module))->graph().first()->args()[0];
}

TEST(Text, EveryDtypeLayoutFormatAndDeviceComesBack) {
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
    const Argument dtype = static_cast<c10::ScalarType>(i);
    EXPECT_EQ(there_and_back(dtype), dtype) << i;
  }
  for (int i = 0; i < static_cast<int>(c10::Layout::NumOptions); ++i) {
    const Argument layout = static_cast<c10::Layout>(i);
    EXPECT_EQ(there_and_back(layout), layout) << i;
  }
  for (int i = 0; i < static_cast<int>(c10::MemoryFormat::NumOptions); ++i) {
    const Argument format = static_cast<c10::MemoryFormat>(i);
    EXPECT_EQ(there_and_back(format), format) << i;
  }
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    for (const int index : {-1, 0, 1, 127}) {
      if (type == c10::DeviceType::CPU && index > 0) continue;  // there is no such device
      const Argument device = c10::Device(type, static_cast<c10::DeviceIndex>(index));
      EXPECT_EQ(there_and_back(device), device) << i << ':' << index;
    }
  }
}

TEST(Text, NumbersAndNamesThatCannotBeAreRefused) {
  const std::string head = "graph_module \"G\" {\n%x = placeholder \"x\" [";
  EXPECT_EQ(error_of(head + "9223372036854775807, -9223372036854775808]}"), "no error");
  EXPECT_EQ(error_of(head + "100000000000000000000]}"), "line 2, column 23: 100000000000000000000 does not fit into 64 bits");
  EXPECT_EQ(error_of(head + "-9223372036854775809]}"), "line 2, column 23: -9223372036854775809 does not fit into 64 bits");
  EXPECT_EQ(error_of(head + "1e999]}"), "line 2, column 23: '1e999' is no value");
  EXPECT_THAT(error_of(head + "{\"a\": 1, \"b\": 2, \"a\": 3}]}"), HasSubstr("the key \"a\" is given twice before this"));
  EXPECT_THAT(error_of(head + "] {\"a\": 1, \"a\": 1}}"), HasSubstr("the key \"a\" is given twice"));
  EXPECT_THAT(error_of(head + "] ; {\"ddp_ignored\": true, \"ddp_ignored\": true}}"), HasSubstr("is given twice"));
  EXPECT_THAT(error_of("graph_module \"G\" {attribute \"w\" {} attribute \"w\" {}}"), HasSubstr("there are two attributes 'w'"));
  EXPECT_THAT(error_of("graph_module \"G\" {submodule \"m\" graph_module \"\" {} submodule \"m\" graph_module \"\" {}}"),
              HasSubstr("there are two submodules 'm'"));
  for (const char* device : {"cuda:128", "cuda:-1", "cuda:01x", "cuda:", "cpu:1", "CPU", ""}) {
    EXPECT_THAT(error_of(head + "device(\"" + device + "\")]}"), HasSubstr("is no device")) << device;
  }
}

TEST(Text, SharedSubmodulesAreWrittenOnceAndStaySharedAndNeverCycles) {
  auto module = std::make_shared<GraphModule>("0");
  for (int i = 1; i <= 40; ++i) {
    auto outer = std::make_shared<GraphModule>(std::to_string(i));
    outer->set_submodule("left", module);
    outer->set_submodule("right", module);
    module = outer;
  }
  const std::string text = to_text(*module);
  EXPECT_LT(text.size(), 10000u);
  const auto parsed = parse_graph_module(text);
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->find_submodule("left"), parsed->find_submodule("right"));
  EXPECT_EQ(parsed->find_submodule("right.left.left")->type(), "37");
  EXPECT_EQ(structural_hash(*parsed), structural_hash(*module));
  for (const char* number : {"0", "1", "-1", "x", "99999999999"}) {
    EXPECT_THAT(error_of(std::string("graph_module \"G\" {\nsubmodule \"m\" shared ") + number + "}"),
                testing::StartsWith("line 2, column 22: "));
  }
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
