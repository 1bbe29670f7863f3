// SPDX-License-Identifier: BSD-3-Clause
#include "graph/passes/partition_builder.h"

#include <algorithm>
#include <utility>

#include "graph/ir/submodules.h"

namespace rehearse::graph {

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

}  // namespace rehearse::graph
