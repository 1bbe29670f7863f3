// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/stored_joint.h"

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rehearse/graph/text.h>

namespace rehearse::compiler {
namespace {

using graph::Argument;
using graph::GraphError;
using graph::GraphModule;
using graph::List;
using graph::Node;
using Kind = capture::GraphOutput::Kind;

constexpr std::int64_t kNone = -1;

std::size_t index_of(const Argument& argument) {
  const auto number = argument.as<std::int64_t>();
  if (number < 0) throw GraphError("", "stored joint graph", "has a negative index");
  return static_cast<std::size_t>(number);
}

std::vector<const Node*> nodes_of(const GraphModule& module) {
  std::vector<const Node*> nodes;
  for (const Node& node : module.graph()) nodes.push_back(&node);
  for (const auto& [name, body] : module.submodules()) {
    const std::vector<const Node*> within = nodes_of(*body);
    nodes.insert(nodes.end(), within.begin(), within.end());
  }
  return nodes;
}

// For each node, the index of the first node of `part` with the same origin; kNone for a node without an origin.
List origins_of(const GraphModule& module, const GraphModule& part) {
  std::unordered_map<const graph::Origin*, std::size_t> first;
  const std::vector<const Node*> of_part = nodes_of(part);
  for (std::size_t i = 0; i < of_part.size(); ++i) first.emplace(of_part[i]->meta().origin.get(), i);
  List origins;
  for (const Node& node : module.graph()) {
    const graph::Metadata& meta = node.meta();
    if (meta.brings_history != 0 || meta.history_from != 0) throw GraphError(node.name(), "meta", "brings history");
    const auto found = first.find(meta.origin.get());
    if (meta.origin != nullptr && found == first.end()) {
      throw GraphError(node.name(), "meta.origin", "is that of no node of the part");
    }
    origins.emplace_back(meta.origin != nullptr ? static_cast<std::int64_t>(found->second) : kNone);
  }
  return origins;
}

void set_origins(GraphModule& module, const List& origins, const GraphModule& part) {
  const std::vector<const Node*> of_part = nodes_of(part);
  std::size_t next = 0;
  for (Node& node : module.graph()) {
    const Argument& origin = origins.at(next++);
    if (origin.as<std::int64_t>() != kNone) node.meta().origin = of_part.at(index_of(origin))->meta().origin;
  }
}

void require_attributes_of(const GraphModule& module, const GraphModule& part) {
  if (!module.submodules().empty()) throw GraphError("", "joint graph", "has a submodule");
  for (const auto& [name, attribute] : module.attributes()) {
    const graph::Attribute* const own = part.find_attribute(name);
    if (own != nullptr && own->tensor.is_same(attribute.tensor)) continue;
    throw GraphError("", name, "is a tensor that recording the joint graph has made");
  }
}

void set_attributes(GraphModule& module, const GraphModule& part) {
  const auto attributes = module.attributes();  // a copy, because set_attribute() changes the map
  for (const auto& [name, attribute] : attributes) {
    const graph::Attribute* const own = part.find_attribute(name);
    if (own == nullptr) throw GraphError("", name, "is no attribute of the part");
    module.set_attribute(name, {attribute.meta, own->tensor, attribute.ddp_ignored});
  }
}

template <class T>
List list_of(const std::vector<T>& values) {
  List list;
  for (const auto& each : values) {
    if constexpr (requires { each.begin(); }) {
      list.push_back(list_of(each));
    } else {
      list.emplace_back(each);
    }
  }
  return list;
}

template <class T>
std::vector<T> values_of(const Argument& list) {
  std::vector<T> values;
  for (const Argument& each : list.as<List>()) {
    if constexpr (std::is_same_v<T, std::size_t>) {
      values.push_back(index_of(each));
    } else {
      values.push_back(each.as<T>());
    }
  }
  return values;
}

List list_of_bools(const std::vector<bool>& values) {
  List list;
  for (const bool each : values) list.emplace_back(each);
  return list;
}

// The members of a joint graph other than its graphs, in the order of their declaration.
List members_of(const capture::JointGraph& joint) {
  List tangents, outputs, changed;
  for (const capture::Tangent& each : joint.tangents) {
    tangents.push_back(List{each.value, list_of(each.form.dim_order), list_of_bools(each.form.expanded)});
  }
  for (const capture::GraphOutput& each : joint.outputs) {
    outputs.push_back(List{static_cast<std::int64_t>(each.kind), each.index});
  }
  for (const capture::ChangedInput& each : joint.changed_inputs) {
    changed.push_back(List{each.input, each.value, each.under_autograd});
  }
  std::int64_t backward_begin = kNone, position = 0;
  for (const Node& node : joint.module->graph()) {
    if (&node == joint.backward_begin) backward_begin = position;
    ++position;
  }
  return {joint.inputs, joint.values, tangents, list_of(joint.leading_tangents), backward_begin, outputs, changed};
}

Kind kind_from(const Argument& argument) {
  const auto number = argument.as<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(Kind::View)) {
    throw GraphError("", "stored joint graph", "has an output of no kind");
  }
  return static_cast<Kind>(number);
}

void set_members(capture::JointGraph& joint, const List& members) {
  joint.inputs = index_of(members.at(0));
  joint.values = index_of(members.at(1));
  for (const Argument& each : members.at(2).as<List>()) {
    const List& tangent = each.as<List>();
    joint.tangents.push_back(
        {index_of(tangent.at(0)), {values_of<std::int64_t>(tangent.at(1)), values_of<bool>(tangent.at(2))}});
  }
  for (const Argument& each : members.at(3).as<List>()) {
    joint.leading_tangents.push_back(values_of<std::size_t>(each));
  }
  std::int64_t position = 0;
  for (const Node& node : std::as_const(*joint.module).graph()) {
    if (position++ == members.at(4).as<std::int64_t>()) joint.backward_begin = &node;
  }
  for (const Argument& each : members.at(5).as<List>()) {
    const List& output = each.as<List>();
    joint.outputs.push_back({kind_from(output.at(0)), index_of(output.at(1))});
  }
  for (const Argument& each : members.at(6).as<List>()) {
    const List& changed = each.as<List>();
    joint.changed_inputs.push_back({index_of(changed.at(0)), index_of(changed.at(1)), changed.at(2).as<bool>()});
  }
}

}  // namespace

std::string stored_joint(const capture::JointGraph& joint, const GraphModule& part) {
  GraphModule stored("joint graph");
  List origins;
  for (const auto& [name, module] : {std::pair("joint", joint.module), std::pair("views", joint.views)}) {
    if (module == nullptr) continue;
    require_attributes_of(*module, part);
    stored.set_submodule(name, module);
    origins.push_back(origins_of(*module, part));
  }
  stored.graph().call_function("members", members_of(joint));
  stored.graph().call_function("origins", std::move(origins));
  return graph::to_text(stored, graph::Origins::Without);
}

capture::JointGraph joint_from(std::string_view text, const GraphModule& part) {
  const auto stored = graph::parse_graph_module(text);
  capture::JointGraph joint;
  joint.module = stored->find_submodule("joint");
  joint.views = stored->find_submodule("views");
  const Node* const members = stored->graph().first();
  const Node* const origins = members != nullptr ? members->next() : nullptr;
  if (joint.module == nullptr || origins == nullptr) throw GraphError("", "stored joint graph", "is not whole");
  std::size_t next = 0;
  for (const auto& module : {joint.module, joint.views}) {
    if (module == nullptr) continue;
    set_origins(*module, origins->args().at(next++).as<List>(), part);
    set_attributes(*module, part);
  }
  set_members(joint, members->args());
  return joint;
}

}  // namespace rehearse::compiler
