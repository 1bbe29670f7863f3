// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/split.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/node_map.h"
#include "graph/ir/submodules.h"
#include "graph/ir/targets.h"
#include "graph/passes/partition_plan.h"

namespace rehearse::graph {
namespace {

// The second half of a split: builds the partitions' modules, in the same steps as fx's split_module, so that the names
// are the same.
class PartitionBuilder {
 public:
  PartitionBuilder(const GraphModule& module, const PartitionPlan& plan);

  std::vector<Partition> build();

 private:
  struct Building {
    Partition result;
    NodeMap copies;
  };

  Node& copy(Building& part, const Node& node, List args, Dict kwargs, const std::string& target);
  void enter_regions(const std::vector<PartitionPlan::Region>& regions);
  // `brought`: see once_brought().
  void add_inputs(std::size_t index, std::size_t brought);
  std::vector<std::size_t> brought_by_parts() const;
  void add_node(Building& part, const Node& node);
  void leave_autocasts();
  void add_output(std::size_t index);

  const GraphModule& module_;
  const PartitionPlan& plan_;
  std::vector<Building> parts_;
};

PartitionBuilder::PartitionBuilder(const GraphModule& module, const PartitionPlan& plan)
    : module_(module), plan_(plan) {
  for (const PartitionPlan::Part& part : plan.parts()) {
    Building& building = parts_.emplace_back();
    building.result.id = part.id;
    building.result.name = "submod_" + std::to_string(part.id);
    building.result.module = std::make_shared<GraphModule>();
  }
}

std::vector<Partition> PartitionBuilder::build() {
  enter_regions(plan_.autocast_regions());
  enter_regions(plan_.grad_regions());
  const std::vector<std::size_t> brought = brought_by_parts();
  std::size_t before = 0;
  for (const std::size_t part : plan_.order()) {
    add_inputs(part, before);
    before = std::max(before, brought[part]);
  }
  for (const Node& node : module_.graph()) {
    if (const std::size_t* part = plan_.part_of(node)) add_node(parts_[*part], node);
  }
  leave_autocasts();
  std::vector<Partition> built;
  for (const std::size_t part : plan_.order()) {
    add_output(part);
    built.push_back(std::move(parts_[part].result));
  }
  return built;
}

Node& PartitionBuilder::copy(Building& part, const Node& node, List args, Dict kwargs, const std::string& target) {
  Node& copy = part.result.module->graph().create_node(node.op(), target, std::move(args), std::move(kwargs));
  copy.meta() = node.meta();
  return copy;
}

// Repeats the change of a mode at the beginning of each later partition in which the mode holds.
void PartitionBuilder::enter_regions(const std::vector<PartitionPlan::Region>& regions) {
  for (const PartitionPlan::Region& region : regions) {
    for (std::size_t i = 1; i < region.parts.size(); ++i) {
      Building& part = parts_[region.parts[i]];
      part.copies[region.enter] =
          &copy(part, *region.enter, region.enter->args(), region.enter->kwargs(), region.enter->target());
    }
  }
}

// The largest `brings_history` among the nodes of each partition; 0 if none brings history to a tensor.
std::vector<std::size_t> PartitionBuilder::brought_by_parts() const {
  std::vector<std::size_t> brought(plan_.parts().size());
  for (const Node& node : module_.graph()) {
    if (const std::size_t* part = plan_.part_of(node)) {
      brought[*part] = std::max(brought[*part], node.meta().brings_history);
    }
  }
  return brought;
}

void PartitionBuilder::add_inputs(std::size_t index, std::size_t brought) {
  Building& part = parts_[index];
  Graph& graph = part.result.module->graph();
  for (const Node* input : plan_.parts()[index].inputs.items()) {
    Node* inside = nullptr;
    const auto body = input->op() == Op::GetAttr ? module_.find_submodule(input->target()) : nullptr;
    if (body != nullptr) {  // moves a higher-order operator's body into the partition instead of passing it
      inside = &graph.get_attr(input->target());
      part.result.module->set_submodule(input->target(), body);
    } else {
      inside = &graph.placeholder(input->name());
      part.result.inputs.push_back(input);
    }
    inside->meta() = once_brought(input->meta(), brought);
    inside->meta().unbacked_bindings.clear();  // the partition receives the symbol and does not define it
    part.copies[input] = inside;
  }
}

void PartitionBuilder::add_node(Building& part, const Node& node) {
  auto mapped = [&](Node& input) -> Argument { return copy_of(part.copies, input); };
  std::string target = node.target();
  if (node.op() == Op::CallModule) {
    const auto called = module_.find_submodule(target);
    if (called == nullptr) throw GraphError(node.name(), "target", "there is no submodule '" + target + "'");
    std::replace(target.begin(), target.end(), '.', '_');
    target = free_name(*part.result.module, target, called.get());
    part.result.module->set_submodule(target, called);
  }
  part.copies[&node] = &copy(part, node, map_nodes(Argument(node.args()), mapped).as<List>(),
                             map_nodes(Argument(node.kwargs()), mapped).as<Dict>(), target);
}

void PartitionBuilder::leave_autocasts() {
  const auto& regions = plan_.autocast_regions();
  for (auto region = regions.rbegin(); region != regions.rend(); ++region) {
    for (std::size_t i = 0; i + 1 < region->parts.size(); ++i) {
      Building& part = parts_[region->parts[i]];
      copy(part, *region->exit, {copy_of(part.copies, *region->enter)}, {}, region->exit->target());
    }
  }
}

void PartitionBuilder::add_output(std::size_t index) {
  Building& part = parts_[index];
  List values;
  for (const Node* output : plan_.parts()[index].outputs.items()) {
    part.result.outputs.push_back(output);
    values.emplace_back(copy_of(part.copies, *output));
  }
  Argument result = values.size() == 1 ? values[0] : Argument(std::move(values));
  part.result.module->graph().output(std::move(result));
}

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
