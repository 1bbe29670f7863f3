// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <unordered_set>

#include <rehearse/graph/errors.h>
#include <rehearse_internal/capture/joint_partition.h>
#include <rehearse_internal/graph/dead_code.h>

#include "capture/joint/tangent_reach.h"

namespace rehearse::capture {
namespace {

using graph::Argument;
using graph::List;
using graph::Node;
using graph::Op;

bool is_number(const Node& node) {
  if (node.meta().value == nullptr) {
    throw graph::GraphError(node.name(), "meta.value",
                            "is unknown, and the backward uses the node: it must say whether that is a tensor");
  }
  return node.meta().value->scalar() != nullptr;
}

// Sorts the nodes of a joint graph by whether they run in the forward or in the backward.
struct Sides {
  std::vector<const Node*> inputs, tangents;
  std::vector<const Node*> forward, backward;  // without placeholders
  List values, gradients;

  explicit Sides(const JointGraph& joint) {
    bool in_backward = false;
    std::unordered_set<const Node*> of_tangents;  // includes queries of their sizes, which precede the backward
    for (const Node& node : joint.module->graph()) {
      in_backward |= &node == joint.backward_begin;
      if (node.op() == Op::Output) continue;
      if (node.op() == Op::Placeholder) {
        const bool is_input = inputs.size() < joint.inputs;
        (is_input ? inputs : tangents).push_back(&node);
        if (!is_input) of_tangents.insert(&node);
        continue;
      }
      const auto& used = node.input_nodes();
      const bool uses_tangent =
          std::any_of(used.begin(), used.end(), [&](const Node* each) { return of_tangents.contains(each); });
      if (uses_tangent && !in_backward) of_tangents.insert(&node);
      (in_backward || uses_tangent ? backward : forward).push_back(&node);
    }
    const Node* output = joint.module->graph().output_node();
    const List* items = output != nullptr && output->args().size() == 1 ? output->args()[0].get_if<List>() : nullptr;
    const std::size_t gradients_wanted = joint.tangents.empty() ? 0 : joint.inputs;
    if (items == nullptr || items->size() != joint.values + gradients_wanted ||
        tangents.size() != joint.tangents.size() || inputs.size() != joint.inputs) {
      throw graph::GraphError("output", "args[0]", "must list a joint graph's values, then a gradient for each input");
    }
    values.assign(items->begin(), items->begin() + static_cast<std::ptrdiff_t>(joint.values));
    gradients.assign(items->begin() + static_cast<std::ptrdiff_t>(joint.values), items->end());
  }
};

// The values that the live part of the backward takes from the forward, in the graph's order.
struct Saved {
  std::vector<const Node*> tensors, numbers;
};

Saved saved_of(const JointGraph& joint, const Sides& sides) {
  std::unordered_set<const Node*> needed;
  const auto need = [&](Node& node) { needed.insert(&node); };
  for (const Argument& gradient : sides.gradients) for_each_node(gradient, need);
  for (auto node = sides.backward.rbegin(); node != sides.backward.rend(); ++node) {
    if (!needed.contains(*node) && graph::is_pure(**node, *joint.module)) continue;
    for (Node* input : (*node)->input_nodes()) needed.insert(input);
  }
  Saved saved;
  const auto save = [&](const Node* node) {
    if (needed.contains(node)) (is_number(*node) ? saved.numbers : saved.tensors).push_back(node);
  };
  for (const Node* node : sides.inputs) save(node);
  for (const Node* node : sides.forward) {
    if (node->op() != Op::GetAttr) save(node);
  }
  return saved;
}

// Copies nodes of another module into a new module, one by one. The two modules share attributes.
class SubgraphCopy {
 public:
  explicit SubgraphCopy(const graph::GraphModule& from) : from_(from) {}

  // Adds a placeholder that stands for the node's value.
  void take_as_input(const graph::Node& node);
  // Copies the node. Its inputs must have been taken before, except attributes, which this function takes, too. Does
  // nothing if the node was taken already.
  void take(const graph::Node& node);
  void return_list(const graph::List& outputs);

  bool has(const graph::Node& node) const { return copies_.contains(&node); }
  const std::shared_ptr<graph::GraphModule>& module() const { return module_; }

 private:
  graph::Argument mapped(graph::Node& node);
  void share_attribute(const std::string& name);

  const graph::GraphModule& from_;
  std::shared_ptr<graph::GraphModule> module_ = std::make_shared<graph::GraphModule>();
  std::unordered_map<const graph::Node*, graph::Node*> copies_;
};

void SubgraphCopy::take_as_input(const graph::Node& node) {
  graph::Node& input = module_->graph().placeholder(node.name(), node.name());
  input.meta() = node.meta();
  copies_.emplace(&node, &input);
}

void SubgraphCopy::take(const graph::Node& node) {
  if (has(node)) return;
  if (node.op() == graph::Op::GetAttr) share_attribute(node.target());
  graph::Node& copy =
      module_->graph().copy_node(node, [this](graph::Node& input) -> graph::Argument { return mapped(input); });
  copies_.emplace(&node, &copy);
}

void SubgraphCopy::return_list(const graph::List& outputs) {
  const graph::Argument result =
      map_nodes(outputs, [this](graph::Node& node) -> graph::Argument { return mapped(node); });
  module_->graph().output(result);
}

graph::Argument SubgraphCopy::mapped(graph::Node& node) {
  if (node.op() == graph::Op::GetAttr) take(node);
  const auto copy = copies_.find(&node);
  if (copy == copies_.end()) throw graph::GraphError(node.name(), "", "is used on a side that does not have it");
  return *copy->second;
}

void SubgraphCopy::share_attribute(const std::string& name) {
  if (const graph::Attribute* attribute = from_.find_attribute(name)) {
    module_->set_attribute(name, *attribute);
  } else if (auto submodule = from_.find_submodule(name)) {
    module_->set_submodule(name, std::move(submodule));
  }
}

std::shared_ptr<graph::GraphModule> forward_of(const JointGraph& joint, const Sides& sides, const Saved& saved) {
  SubgraphCopy copy(*joint.module);
  for (const Node* node : sides.inputs) copy.take_as_input(*node);
  for (const Node* node : sides.forward) copy.take(*node);
  List outputs = sides.values;
  for (const auto* group : {&saved.tensors, &saved.numbers}) {
    for (const Node* node : *group) outputs.emplace_back(const_cast<Node*>(node));
  }
  copy.return_list(outputs);
  graph::eliminate_dead_code(*copy.module());
  return copy.module();
}

std::shared_ptr<graph::GraphModule> backward_of(const JointGraph& joint, const Sides& sides, const Saved& saved) {
  SubgraphCopy copy(*joint.module);
  for (const auto* group : {&saved.tensors, &saved.numbers, &sides.tangents}) {
    for (const Node* node : *group) copy.take_as_input(*node);
  }
  for (const Node* node : sides.backward) {
    const auto& inputs = node->input_nodes();
    const bool has_inputs = std::all_of(inputs.begin(), inputs.end(), [&](const Node* input) {
      return copy.has(*input) || input->op() == Op::GetAttr;
    });
    if (has_inputs) copy.take(*node);  // a node without its inputs is dead: saved_of() did not save what it uses
  }
  copy.return_list(sides.gradients);
  graph::eliminate_dead_code(*copy.module());
  return copy.module();
}

// For each gradient, the tangents that define it: the gradient is defined if at least one of them is.
std::vector<std::vector<std::size_t>> gradient_tangents(const JointGraph& joint, const Sides& sides) {
  TangentReach reach(sides.tangents);
  for (const Node* node : sides.backward) reach.pass(*node);
  std::vector<std::vector<std::size_t>> result(sides.gradients.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Node* node = sides.gradients[i].node();
    if (node == nullptr) continue;
    result[i] = reach.of(*node);
    // Autograd leaves a gradient undefined if no tangent that leads to it is defined. This holds even if the gradient's
    // value depends on no tangent: the backward of sgn() gives zeros.
    if (result[i].empty() && i < joint.leading_tangents.size()) result[i] = joint.leading_tangents[i];
  }
  return result;
}

}  // namespace

JointPartition partition_joint(const JointGraph& joint) {
  const Sides sides(joint);
  if (joint.tangents.empty()) return {.forward = forward_of(joint, sides, {})};
  const Saved saved = saved_of(joint, sides);
  return {.forward = forward_of(joint, sides, saved),
          .backward = backward_of(joint, sides, saved),
          .saved_tensors = saved.tensors.size(),
          .saved_numbers = saved.numbers.size(),
          .gradient_tangents = gradient_tangents(joint, sides)};
}

}  // namespace rehearse::capture
