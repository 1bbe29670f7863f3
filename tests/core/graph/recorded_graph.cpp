// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/recorded_graph.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <zlib.h>

namespace rehearse::graph {
namespace {

using nlohmann::json;
using Nodes = std::map<std::string, Node*>;

const std::map<std::string, c10::ScalarType> kDtypes = {
    {"float32", c10::kFloat}, {"float64", c10::kDouble}, {"float16", c10::kHalf},          {"bfloat16", c10::kBFloat16},
    {"int64", c10::kLong},    {"int32", c10::kInt},      {"int16", c10::kShort},           {"int8", c10::kChar},
    {"uint8", c10::kByte},    {"bool", c10::kBool},      {"complex64", c10::kComplexFloat}};

Argument argument_of(const json& recorded, const Nodes& nodes) {
  if (recorded.is_null()) return {};
  if (recorded.is_boolean()) return recorded.get<bool>();
  if (recorded.is_number_integer()) return recorded.get<std::int64_t>();
  if (recorded.is_number()) return recorded.get<double>();
  if (recorded.is_string()) return recorded.get<std::string>();
  if (recorded.is_array()) {
    List list;
    for (const json& item : recorded) list.push_back(argument_of(item, nodes));
    return list;
  }
  if (recorded.contains("n")) return *nodes.at(recorded.at("n"));
  if (recorded.contains("dtype")) return kDtypes.at(recorded.at("dtype"));
  if (recorded.contains("slice")) {
    const json& bounds = recorded.at("slice");
    return Slice(argument_of(bounds[0], nodes), argument_of(bounds[1], nodes), argument_of(bounds[2], nodes));
  }
  Dict dict;
  for (const auto& [key, item] : recorded.items()) dict.emplace_back(key, argument_of(item, nodes));
  return dict;
}

// Reads a number, a number as text (`"512"`), or an expression.
SymInt size_of(const json& recorded) {
  if (recorded.is_number()) return recorded.get<std::int64_t>();
  return SymExpr(recorded.get<std::string>());
}

TensorMeta tensor_of(const json& recorded) {
  TensorMeta tensor;
  for (const json& size : recorded.at("shape")) tensor.sizes.push_back(size_of(size));
  for (const json& stride : recorded.at("stride")) tensor.strides.push_back(size_of(stride));
  tensor.dtype = kDtypes.at(recorded.at("dtype"));
  tensor.requires_grad = recorded.at("requires_grad");
  tensor.is_parameter = recorded.value("is_param", false);
  if (recorded.contains("storage_nbytes")) tensor.storage_nbytes = size_of(recorded.at("storage_nbytes"));
  return tensor;
}

ValueMeta value_of(const json& recorded) {
  if (recorded.is_null()) return {};
  const std::string kind = recorded.at("kind");
  if (kind == "tensor") return tensor_of(recorded);
  if (kind == "symint") return SymScalarMeta{SymScalarMeta::Kind::Int, {recorded.at("expr")}};
  if (kind == "none") return {};
  if (kind == "symbool") return SymScalarMeta{SymScalarMeta::Kind::Bool, {recorded.at("expr")}};
  if (kind != "list") throw std::runtime_error("unknown kind of value: " + kind);
  ValueMeta::List items;
  for (const json& item : recorded.at("items")) items.push_back(value_of(item));
  return items;
}

void add_attribute(GraphModule& module, const json& recorded) {
  const std::string target = recorded.at("target");
  if (module.find_attribute(target) != nullptr || module.find_submodule(target) != nullptr) return;
  if (recorded.contains("subgraph") || target == "body") {
    auto body = std::make_shared<GraphModule>();
    if (recorded.contains("subgraph")) add_recorded_nodes(*body, recorded.at("subgraph"));
    return module.set_submodule(target, body);
  }
  Attribute attribute;
  if (recorded.contains("val")) attribute.meta = tensor_of(recorded.at("val"));
  attribute.ddp_ignored = recorded.value("ddp_ignored", false);
  module.set_attribute(target, attribute);
}

// Adds a called module whose code was not traced. Its record is {type, params: [[name, shape, dtype, bytes,
// requires_grad, ignored by DDP]]}. If there is no record, adds a module without parameters.
void add_leaf(GraphModule& module, const json& recorded) {
  const std::string target = recorded.at("target");
  if (module.find_submodule(target) != nullptr) return;
  const json facts = recorded.value("module", json::object());
  auto leaf = std::make_shared<GraphModule>(facts.value("type", "Leaf"));
  for (const json& parameter : facts.value("params", json::array())) {
    Attribute attribute;
    for (const json& size : parameter.at(1)) attribute.meta.sizes.push_back(size_of(size));
    attribute.meta.dtype = kDtypes.at(parameter.at(2));
    attribute.meta.storage_nbytes = size_of(parameter.at(3));
    attribute.meta.requires_grad = parameter.at(4);
    attribute.meta.is_parameter = true;
    attribute.ddp_ignored = parameter.at(5);
    leaf->set_attribute(parameter.at(0), attribute);
  }
  module.set_submodule(target, leaf);
}

json record(const Argument& argument) {
  if (const auto* node = argument.get_if<Node*>()) return {{"n", (*node)->name()}};
  if (const auto* flag = argument.get_if<bool>()) return *flag;
  if (const auto* number = argument.get_if<std::int64_t>()) return *number;
  if (const auto* number = argument.get_if<double>()) return *number;
  if (const auto* text = argument.get_if<std::string>()) return *text;
  if (const auto* dtype = argument.get_if<c10::ScalarType>()) {
    for (const auto& [name, known] : kDtypes) {
      if (known == *dtype) return {{"dtype", name}};
    }
  }
  if (const auto* slice = argument.get_if<Slice>()) return {{"slice", record(List(slice->bounds()))}};
  if (const auto* list = argument.get_if<List>()) {
    json items = json::array();
    for (const Argument& item : *list) items.push_back(record(item));
    return items;
  }
  if (const auto* dict = argument.get_if<Dict>()) {
    json items = json::object();
    for (const auto& [key, item] : *dict) items[key] = record(item);
    return items;
  }
  if (!argument.is_none()) throw std::runtime_error("no recorded form for this argument");
  return nullptr;
}

}  // namespace

std::string read_gzip(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), gzclose);
  if (in == nullptr) throw std::runtime_error("cannot open " + file.string());
  std::string text;
  char buffer[1 << 16];
  int count = 0;
  while ((count = gzread(in.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(count));
  // gzread() reads a truncated file as if it were complete; only the stream's state reveals the error.
  int state = Z_OK;
  gzerror(in.get(), &state);
  if (count < 0 || (state != Z_OK && state != Z_STREAM_END)) {
    throw std::runtime_error("not a whole gzip file: " + file.string());
  }
  return text;
}

json read_json_gz(const std::filesystem::path& file) { return json::parse(read_gzip(file)); }

void add_recorded_nodes(GraphModule& module, const json& recorded_nodes) {
  Nodes nodes;
  for (const json& recorded : recorded_nodes) {
    const Op op = op_from_string(recorded.at("op").get<std::string>()).value();
    Argument kwargs = argument_of(recorded.value("kwargs", json::object()), nodes);
    const std::string name = recorded.at("name");
    Node& node =
        module.graph().create_node(op, recorded.at("target"), argument_of(recorded.at("args"), nodes).as<List>(),
                                   kwargs.is<Dict>() ? kwargs.as<Dict>() : Dict{}, name);
    if (node.name() != name) throw std::runtime_error("name " + name + " became " + node.name());
    if (recorded.contains("val")) node.meta().set_value(value_of(recorded.at("val")));
    for (const json& symbol : recorded.value("unbacked_bindings", json::array())) {
      node.meta().unbacked_bindings.push_back(symbol);
    }
    node.meta().ddp_ignored = recorded.value("ddp_ignored", false);
    nodes[name] = &node;
    if (op == Op::GetAttr) add_attribute(module, recorded);
    if (op == Op::CallModule) add_leaf(module, recorded);
  }
}

json record_nodes(const Graph& graph) {
  json nodes = json::array();
  for (const Node& node : graph) {
    json recorded = {
        {"name", node.name()}, {"op", to_string(node.op())}, {"target", node.target()}, {"args", record(node.args())}};
    if (!node.kwargs().empty()) recorded["kwargs"] = record(node.kwargs());
    nodes.push_back(std::move(recorded));
  }
  return nodes;
}

}  // namespace rehearse::graph
