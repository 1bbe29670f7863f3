// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/split.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/ir/node_map.h"
#include "graph/passes/partition_plan.h"

namespace rehearse::graph {
namespace {

// `wanted`, with a number when something else in the module has this name; fx lets the later one win.
std::string free_name(const GraphModule& module, const std::string& wanted, const GraphModule& submodule) {
  std::string name = wanted;
  for (int number = 1;; ++number) {
    const auto other = module.find_submodule(name);
    const bool is_free = other == nullptr && module.find_attribute(name) == nullptr;
    if (is_free || other.get() == &submodule) return name;
    name = wanted + "_" + std::to_string(number);
  }
}

// Builds the parts' modules, in the steps of fx's split_module, so that names come out the same.
class PartBuilder {
 public:
  PartBuilder(const GraphModule& module, const PartitionPlan& plan) : module_(module), plan_(plan) {
    for (const PartitionPlan::Part& part : plan.parts()) {
      Building& building = parts_.emplace_back();
      building.result.id = part.id;
      building.result.name = "submod_" + std::to_string(part.id);
      building.result.module = std::make_shared<GraphModule>();
    }
  }

  std::vector<Partition> build() {
    enter_regions(plan_.autocast_regions());
    enter_regions(plan_.grad_regions());
    for (const std::size_t part : plan_.order()) add_inputs(part);
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

 private:
  struct Building {
    Partition result;
    NodeMap copies;
  };

  Node& copy(Building& part, const Node& node, List args, Dict kwargs, const std::string& target) {
    Node& copy = part.result.module->graph().create_node(node.op(), target, std::move(args), std::move(kwargs));
    copy.meta() = node.meta();
    return copy;
  }

  // A state that was set in an earlier part is set again where this one begins.
  void enter_regions(const std::vector<PartitionPlan::Region>& regions) {
    for (const PartitionPlan::Region& region : regions) {
      for (std::size_t i = 1; i < region.parts.size(); ++i) {
        Building& part = parts_[region.parts[i]];
        part.copies[region.enter] = &copy(part, *region.enter, region.enter->args(), region.enter->kwargs(), region.enter->target());
      }
    }
  }

  void add_inputs(std::size_t index) {
    Building& part = parts_[index];
    Graph& graph = part.result.module->graph();
    for (const Node* input : plan_.parts()[index].inputs.items()) {
      Node* inside = nullptr;
      const auto body = input->op() == Op::GetAttr ? module_.find_submodule(input->target()) : nullptr;
      if (body != nullptr) {  // a higher-order operator's body goes along instead of being passed
        inside = &graph.get_attr(input->target());
        part.result.module->set_submodule(input->target(), body);
      } else {
        inside = &graph.placeholder(input->name());
        part.result.inputs.push_back(input);
      }
      inside->meta() = input->meta();
      inside->meta().unbacked_bindings.clear();  // the symbol is brought in, not into being
      part.copies[input] = inside;
    }
  }

  void add_node(Building& part, const Node& node) {
    auto mapped = [&](Node& input) -> Argument { return copy_of(part.copies, input); };
    std::string target = node.target();
    if (node.op() == Op::CallModule) {
      const auto called = module_.find_submodule(target);
      if (called == nullptr) throw GraphError(node.name(), "target", "there is no submodule '" + target + "'");
      std::replace(target.begin(), target.end(), '.', '_');
      target = free_name(*part.result.module, target, *called);
      part.result.module->set_submodule(target, called);
    }
    part.copies[&node] = &copy(part, node, map_nodes(Argument(node.args()), mapped).as<List>(),
                               map_nodes(Argument(node.kwargs()), mapped).as<Dict>(), target);
  }

  void leave_autocasts() {
    const auto& regions = plan_.autocast_regions();
    for (auto region = regions.rbegin(); region != regions.rend(); ++region) {
      for (std::size_t i = 0; i + 1 < region->parts.size(); ++i) {
        Building& part = parts_[region->parts[i]];
        copy(part, *region->exit, {copy_of(part.copies, *region->enter)}, {}, region->exit->target());
      }
    }
  }

  void add_output(std::size_t index) {
    Building& part = parts_[index];
    List values;
    for (const Node* output : plan_.parts()[index].outputs.items()) {
      part.result.outputs.push_back(output);
      values.emplace_back(copy_of(part.copies, *output));
    }
    Argument result = values.size() == 1 ? values[0] : Argument(std::move(values));
    part.result.module->graph().output(std::move(result));
  }

  const GraphModule& module_;
  const PartitionPlan& plan_;
  std::vector<Building> parts_;
};

// What a call of the part gives, as far as it is known.
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

// The node that calls the part, and one for each of its outputs.
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
    Node& item = graph.call_function("_operator.getitem", {call, i});
    item.meta() = part.outputs[i]->meta();
    copies[part.outputs[i]] = &item;
  }
}

}  // namespace

SplitModule split_by(const GraphModule& module, const std::function<int(const Node&)>& partition_of) {
  const PartitionPlan plan(module.graph(), partition_of);
  SplitModule split{std::make_shared<GraphModule>(), PartBuilder(module, plan).build()};
  Graph& graph = split.module->graph();
  NodeMap copies;
  for (const Node& node : module.graph()) {
    if (node.op() != Op::Placeholder && node.op() != Op::GetAttr) continue;
    Node& copy = graph.create_node(node.op(), node.target(), node.args());
    copy.meta() = node.meta();
    copies[&node] = &copy;
    if (node.op() == Op::Placeholder) continue;
    if (const auto body = module.find_submodule(node.target())) {
      split.module->set_submodule(node.target(), body);
    } else if (const Attribute* attribute = module.find_attribute(node.target())) {
      split.module->set_attribute(node.target(), *attribute);
    } else {
      throw GraphError(node.name(), "target", "there is no attribute '" + node.target() + "'");
    }
  }
  for (Partition& part : split.partitions) {
    part.name = free_name(*split.module, part.name, *part.module);
    split.module->set_submodule(part.name, part.module);
    call_part(graph, part, copies);
  }
  if (const Node* output = module.graph().output_node()) {
    if (output->args().size() != 1) throw GraphError(output->name(), "args", "an output has exactly one");
    graph.output(map_nodes(output->args()[0], [&](Node& node) -> Argument { return copy_of(copies, node); }));
  }
  return split;
}

}  // namespace rehearse::graph
