// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/split.h>

#include <utility>

#include "graph/ir/node_map.h"
#include "graph/ir/submodules.h"
#include "graph/ir/targets.h"
#include "graph/passes/partition_builder.h"

namespace rehearse::graph {
namespace {

// The metadata of a call of the partition; fields that are not known stay empty.
Metadata meta_of_call(const Partition& part) {
  if (part.outputs.size() == 1) return part.outputs[0]->meta();
  ValueMeta::List items;
  for (const Node* output : part.outputs) {
    if (output->meta().value == nullptr) return {};
    items.push_back(*output->meta().value);
  }
  Metadata meta;
  meta.set_value(std::move(items));
  return meta;
}

// Adds a node that calls the partition and, unless it has a single output, one node for each output.
void call_part(Graph& graph, const Partition& part, NodeMap& copies) {
  List args;
  for (const Node* input : part.inputs) args.emplace_back(copy_of(copies, *input));
  Node& call = graph.call_module(part.name, std::move(args));
  call.meta() = meta_of_call(part);
  if (part.outputs.size() == 1) {
    copies[part.outputs[0]] = &call;
    return;
  }
  for (std::size_t i = 0; i < part.outputs.size(); ++i) {
    Node& item = graph.call_function(std::string(kGetItem), {call, i});
    item.meta() = part.outputs[i]->meta();
    copies[part.outputs[i]] = &item;
  }
}

// Placeholders and attributes stay outside of the partitions.
void copy_outside(const GraphModule& module, GraphModule& split, NodeMap& copies) {
  for (const Node& node : module.graph()) {
    if (node.op() != Op::Placeholder && node.op() != Op::GetAttr) continue;
    Node& copy = split.graph().create_node(node.op(), node.target(), node.args());
    copy.meta() = node.meta();
    copies[&node] = &copy;
    if (node.op() == Op::Placeholder) continue;
    if (const auto body = module.find_submodule(node.target())) {
      split.set_submodule(node.target(), body);
    } else if (const Attribute* attribute = module.find_attribute(node.target())) {
      split.set_attribute(node.target(), *attribute);
    } else {
      throw GraphError(node.name(), "target", "there is no attribute '" + node.target() + "'");
    }
  }
}

}  // namespace

SplitModule split_by(const GraphModule& module, const std::function<int(const Node&)>& partition_of,
                     PartitionOrder order) {
  const PartitionPlan plan(module.graph(), partition_of, order);
  SplitModule split{std::make_shared<GraphModule>(), PartitionBuilder(module, plan).build()};
  NodeMap copies;
  copy_outside(module, *split.module, copies);
  for (Partition& part : split.partitions) {
    part.name = free_name(*split.module, part.name, part.module.get());
    split.module->set_submodule(part.name, part.module);
    call_part(split.module->graph(), part, copies);
  }
  if (const Node* output = module.graph().output_node()) {
    if (output->args().size() != 1) throw GraphError(output->name(), "args", "an output has exactly one");
    split.module->graph().output(
        map_nodes(output->args()[0], [&](Node& node) -> Argument { return copy_of(copies, node); }));
  }
  return split;
}

}  // namespace rehearse::graph
