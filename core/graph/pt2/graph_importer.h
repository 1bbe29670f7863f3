// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "graph/pt2/json_field.h"

namespace rehearse::graph {

// Builds the graph of one module from its serialized form. The bodies of higher-order operators become submodules.
class GraphImporter {
 public:
  // `input_names`: names of the placeholders, one for each input. Empty for bodies, whose inputs have names.
  GraphImporter(GraphModule& module, const Field& graph, std::vector<std::string> input_names);

  void run();

 private:
  void add_inputs();
  void add_node(const Field& serialized);
  void add_output();

  Argument argument(const Field& field);
  Argument node_argument(const std::string& kind, const Field& value);
  Argument list_argument(const std::string& kind, const Field& value);
  Argument constant_argument(const std::string& kind, const Field& value);
  Argument body(const Field& field);
  Node& value(const Field& name);

  void bind_outputs(Node& node, const Field& outputs, bool single);
  void bind_items(Node& node, const std::vector<Field>& items);
  void bind_item(Node& node, const Field& name, std::size_t index);
  std::optional<ValueMeta> meta_of(const std::string& name);
  std::optional<ValueMeta> meta_of_output(const Field& output);
  void set_value(Node& node, std::optional<ValueMeta> meta);

  GraphModule& module_;
  Field graph_;
  std::vector<std::string> input_names_;
  std::unordered_map<std::string, Node*> values_;
  // Results that may stay unused, by name. Their getitem node is created at the first use.
  std::unordered_map<std::string, std::pair<Node*, std::size_t>> unused_;
  std::set<std::string> bound_symbols_;
};

}  // namespace rehearse::graph
