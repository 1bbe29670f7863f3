// SPDX-License-Identifier: BSD-3-Clause
#include "graph/pt2/graph_importer.h"

#include <utility>

#include "graph/ir/targets.h"
#include "graph/pt2/schema_values.h"

namespace rehearse::graph {
namespace {

Origin origin_of(const Field& metadata) {
  auto text = [&](const char* key) { return metadata.find(key) ? metadata[key].text() : std::string(); };
  return {text("stack_trace"), text("nn_module_stack"), text("torch_fn")};
}

// The name of the value that is this input or output; empty for constants.
std::string value_name(const Field& argument) {
  const auto [kind, value] = argument.variant();
  if (kind == "as_tensor" || kind == "as_custom_obj") return value["name"].text();
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
    return value.find("as_name") ? value["as_name"].text() : "";
  }
  return "";
}

}  // namespace

GraphImporter::GraphImporter(GraphModule& module, const Field& graph, std::vector<std::string> input_names)
    : module_(module), graph_(graph), input_names_(std::move(input_names)) {}

void GraphImporter::run() {
  add_inputs();
  for (const Field& node : graph_["nodes"].items()) add_node(node);
  add_output();
}

void GraphImporter::add_inputs() {
  const std::vector<Field> inputs = graph_["inputs"].items();
  if (!input_names_.empty() && input_names_.size() != inputs.size()) {
    graph_["inputs"].fail("has " + std::to_string(inputs.size()) + " inputs; the signature has " +
                          std::to_string(input_names_.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::string name = value_name(inputs[i]);
    if (name.empty() && i < input_names_.size()) name = input_names_[i];
    if (name.empty()) inputs[i].fail("an input must be a tensor or a symbolic number with a name");
    Node& node = module_.graph().placeholder(name, name);
    if (!values_.emplace(name, &node).second) inputs[i].fail("there is another value named '" + name + "'");
    set_value(node, meta_of(name));
  }
}

void GraphImporter::add_node(const Field& unnamed) {
  std::string name = unnamed.find("name") ? unnamed["name"].text() : "";
  const std::vector<Field> outputs = unnamed["outputs"].items();
  const bool single = outputs.size() == 1 && !value_name(outputs[0]).empty();
  if (name.empty() && single) name = value_name(outputs[0]);
  const Field serialized = unnamed.in_node(name.empty() ? unnamed["target"].text() : name);
  List args;
  Dict kwargs;
  for (const Field& input : serialized["inputs"].items()) {
    const std::string key = input["name"].text();
    const std::int64_t kind = input.find("kind") ? input["kind"].integer() : 0;
    if (kind == 1 || (kind == 0 && key.empty())) {
      if (!kwargs.empty() && kind == 1) input.fail("a positional argument comes after a keyword argument");
      args.push_back(argument(input["arg"]));
    } else if (kind == 2 || kind == 0) {
      kwargs.emplace_back(key, argument(input["arg"]));
    } else {
      input["kind"].fail(std::to_string(kind) + " is neither 1 (positional) nor 2 (keyword)");
    }
  }
  const std::string target = serialized["target"].text();
  Node& node = module_.graph().call_function(target, std::move(args), std::move(kwargs), name);
  node.meta().set_origin(origin_of(serialized["metadata"]));
  const auto returns_one = serialized.find("is_hop_single_tensor_return");
  const bool one_of_list = target.starts_with(kHigherOrder) && returns_one && !returns_one->boolean();
  bind_outputs(node, serialized["outputs"], single && !one_of_list);
}

void GraphImporter::add_output() {
  List results;
  for (const Field& output : graph_["outputs"].items()) results.push_back(argument(output));
  const auto single = graph_.find("is_single_tensor_return");
  if (single && single->boolean() && results.size() == 1) {
    module_.graph().output(results[0]);
  } else {
    module_.graph().output(std::move(results));
  }
}

void GraphImporter::bind_outputs(Node& node, const Field& outputs, bool single) {
  const std::vector<Field> items = outputs.items();
  if (items.empty()) return;
  if (single) {
    const std::string name = value_name(items[0]);
    if (!values_.emplace(name, &node).second) items[0].fail("there is another value named '" + name + "'");
    return set_value(node, meta_of(name));
  }
  const auto [kind, value] = items[0].variant();
  const bool is_list = items.size() == 1 && (kind == "as_tensors" || kind == "as_optional_tensors");
  bind_items(node, is_list ? value.items() : items);
}

// Adds a node for each result of a node with several results. Leaves out None, and results that may stay unused.
void GraphImporter::bind_items(Node& node, const std::vector<Field>& items) {
  ValueMeta::List metas;
  for (const Field& item : items) metas.push_back(meta_of_output(item).value_or(ValueMeta()));
  set_value(node, ValueMeta(std::move(metas)));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const auto name = items[i].find("name")) {  // as_tensors: [{"name": ...}]
      bind_item(node, *name, i);
      continue;
    }
    const auto [kind, value] = items[i].variant();
    if (kind == "as_none") continue;
    if (kind == "as_tensor") {
      bind_item(node, value["name"], i);
    } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
      bind_item(node, value["as_name"], i);
    } else if (kind == "as_tensors") {
      Node& list = module_.graph().call_function(std::string(kGetItem), {node, i});
      list.meta().origin = node.meta().origin;
      bind_items(list, value.items());
    } else {
      items[i].fail("'" + kind + "' is no kind of result that is known here");
    }
  }
}

void GraphImporter::bind_item(Node& node, const Field& field, std::size_t index) {
  const std::string name = field.text();
  if (values_.contains(name) || unused_.contains(name)) field.fail("there is another value named '" + name + "'");
  if (name.find("_unused_") != std::string::npos) {
    unused_[name] = {&node, index};
    return;
  }
  Node& item = module_.graph().call_function(std::string(kGetItem), {node, index}, {}, name);
  item.meta().origin = node.meta().origin;
  set_value(item, meta_of(name));
  values_[name] = &item;
}

Node& GraphImporter::value(const Field& field) {
  const std::string name = field.text();
  const auto found = values_.find(name);
  if (found != values_.end()) return *found->second;
  const auto unused = unused_.find(name);
  if (unused == unused_.end()) field.fail("there is no value '" + name + "' before this");
  const auto [node, index] = unused->second;
  Node& item = module_.graph().call_function(std::string(kGetItem), {*node, index}, {}, name);
  set_value(item, meta_of(name));
  values_[name] = &item;
  return item;
}

std::optional<ValueMeta> GraphImporter::meta_of_output(const Field& output) {
  if (const auto name = output.find("name")) return meta_of(name->text());
  const auto [kind, value] = output.variant();
  if (kind == "as_tensors") {
    ValueMeta::List items;
    for (const Field& item : value.items()) items.push_back(meta_of(item["name"].text()).value_or(ValueMeta()));
    return ValueMeta(std::move(items));
  }
  return meta_of(value_name(output));
}

std::optional<ValueMeta> GraphImporter::meta_of(const std::string& name) {
  if (const auto tensor = graph_["tensor_values"].find(name)) return ValueMeta(read_tensor_meta(*tensor));
  using Kind = SymScalarMeta::Kind;
  for (const auto& [table, kind] : {std::pair("sym_int_values", Kind::Int), std::pair("sym_float_values", Kind::Float),
                                    std::pair("sym_bool_values", Kind::Bool)}) {
    const auto values = graph_.find(table);
    if (!values) continue;
    if (const auto scalar = values->find(name)) return ValueMeta(read_sym_scalar(*scalar, kind));
  }
  return std::nullopt;
}

// Sets the node's metadata, and notes the unbacked symbols that occur first here.
void GraphImporter::set_value(Node& node, std::optional<ValueMeta> meta) {
  if (!meta) return;
  for (const std::string& symbol : free_symbols(*meta)) {
    if (shapes::is_unbacked_name(symbol) && bound_symbols_.insert(symbol).second)
      node.meta().unbacked_bindings.push_back(symbol);
  }
  node.meta().set_value(*std::move(meta));
}

}  // namespace rehearse::graph
