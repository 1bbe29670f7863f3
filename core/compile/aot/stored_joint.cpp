// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/stored_joint.h"

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rehearse/graph/text.h>
#include <rehearse_internal/archive/archive.h>

namespace rehearse::capture {

template <class Archive>
static void fields(Archive& archive, Tangent& tangent) {
  archive(tangent.value, tangent.form.dim_order, tangent.form.expanded);
}
template <class Archive>
static void fields(Archive& archive, GraphOutput& output) {
  archive(output.kind, output.index);
  archive.check(output.kind, GraphOutput::Kind::View, "kind of output");
}
template <class Archive>
static void fields(Archive& archive, ChangedInput& changed) {
  archive(changed.input, changed.value, changed.under_autograd);
}

}  // namespace rehearse::capture

namespace rehearse::compiler {
namespace {

using graph::GraphError;
using graph::GraphModule;
using graph::Node;

constexpr std::int64_t kNone = -1;

struct Stored {
  std::string graphs;                              // a module with the graphs as its submodules, as text
  std::vector<std::vector<std::int64_t>> origins;  // see origins_of(), for each graph
  std::int64_t backward_begin = kNone;             // the position of the node
  capture::JointGraph joint;                       // without graphs and nodes
};

template <class Archive>
void fields(Archive& archive, Stored& stored) {
  auto& joint = stored.joint;
  archive(stored.graphs, stored.origins, stored.backward_begin, joint.inputs, joint.values, joint.tangents,
          joint.leading_tangents, joint.outputs, joint.changed_inputs);
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
std::vector<std::int64_t> origins_of(const GraphModule& module, const GraphModule& part) {
  std::unordered_map<const graph::Origin*, std::size_t> first;
  const std::vector<const Node*> of_part = nodes_of(part);
  for (std::size_t i = 0; i < of_part.size(); ++i) first.emplace(of_part[i]->meta().origin.get(), i);
  std::vector<std::int64_t> origins;
  for (const Node& node : module.graph()) {
    const graph::Metadata& meta = node.meta();
    if (meta.brings_history != 0 || meta.history_from != 0) throw GraphError(node.name(), "meta", "brings history");
    const auto found = first.find(meta.origin.get());
    if (meta.origin != nullptr && found == first.end()) {
      throw GraphError(node.name(), "meta.origin", "is that of no node of the part");
    }
    origins.push_back(meta.origin != nullptr ? static_cast<std::int64_t>(found->second) : kNone);
  }
  return origins;
}

void set_origins(GraphModule& module, const std::vector<std::int64_t>& origins, const GraphModule& part) {
  const std::vector<const Node*> of_part = nodes_of(part);
  std::size_t next = 0;
  for (Node& node : module.graph()) {
    const std::int64_t origin = origins.at(next++);
    if (origin != kNone) node.meta().origin = of_part.at(static_cast<std::size_t>(origin))->meta().origin;
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

std::int64_t position_of(const Node* wanted, const GraphModule& module) {
  std::int64_t position = 0;
  for (const Node& node : module.graph()) {
    if (&node == wanted) return position;
    ++position;
  }
  return kNone;
}

const Node* node_at(std::int64_t wanted, const GraphModule& module) {
  std::int64_t position = 0;
  for (const Node& node : module.graph()) {
    if (position++ == wanted) return &node;
  }
  return nullptr;
}

}  // namespace

std::string stored_joint(const capture::JointGraph& joint, const GraphModule& part) {
  Stored stored;
  stored.joint = joint;
  stored.backward_begin = position_of(joint.backward_begin, *joint.module);
  GraphModule graphs("joint graph");
  for (const auto& [name, module] : {std::pair("joint", joint.module), std::pair("views", joint.views)}) {
    if (module == nullptr) continue;
    require_attributes_of(*module, part);
    graphs.set_submodule(name, module);
    stored.origins.push_back(origins_of(*module, part));
  }
  stored.graphs = graph::to_text(graphs, graph::Origins::Without);
  return archive::packed(stored);
}

capture::JointGraph joint_from(std::string_view bytes, const GraphModule& part) {
  auto stored = archive::unpacked<Stored>(bytes, "the stored joint graph");
  const auto graphs = graph::parse_graph_module(stored.graphs);
  capture::JointGraph joint = std::move(stored.joint);
  joint.module = graphs->find_submodule("joint");
  joint.views = graphs->find_submodule("views");
  if (joint.module == nullptr) throw GraphError("", "stored joint graph", "is not whole");
  std::size_t next = 0;
  for (const auto& module : {joint.module, joint.views}) {
    if (module == nullptr) continue;
    set_origins(*module, stored.origins.at(next++), part);
    set_attributes(*module, part);
  }
  joint.backward_begin = node_at(stored.backward_begin, *joint.module);
  return joint;
}

}  // namespace rehearse::compiler
