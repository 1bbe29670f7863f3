// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/outline_hooks.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/body_nodes.h"
#include "capture/trace/recording/border_meta.h"
#include "capture/trace/recording/fold_linear.h"
#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::Argument;
using graph::GraphModule;
using graph::List;
using graph::Node;

std::int64_t number_of_hook(const Node& mark) { return *mark.args()[0].get_if<std::int64_t>(); }

// Moves the nodes of a hook into a submodule, and adds the node that registers the hook.
class HookOutline {
 public:
  HookOutline(GraphModule& module, const BodyNodes& nodes)
      : module_(module), nodes_(nodes), brought_(brought_before(module, nodes.begin())) {}

  void run() {
    Node& gradient = body_->graph().placeholder("gradient");
    gradient.meta() = at_border(nodes_.begin(), brought_);
    copies_.emplace(&nodes_.begin(), &gradient);
    for (const Node* node : nodes_.nodes()) add_operands(node->input_nodes());
    for_each_node(nodes_.end().args()[1], [&](Node& result) { add_operands({&result}); });
    for (const Node* node : nodes_.nodes()) add(*node);
    body_->graph().output(
        graph::map_nodes(nodes_.end().args()[1], [this](Node& node) -> Argument { return *copies_.at(&node); }));
    fold_linear(*body_);
    call();
  }

 private:
  void add_operands(const std::vector<Node*>& used) {
    for (Node* node : used) {
      if (nodes_.has(*node) || copies_.contains(node)) continue;
      Node& placeholder = body_->graph().placeholder(node->name());
      placeholder.meta() = at_border(*node, brought_);
      copies_.emplace(node, &placeholder);
      operands_.push_back(node);
    }
  }

  void add(const Node& node) {
    if (node.op() == graph::Op::GetAttr) {
      body_->set_submodule(node.target(), module_.find_submodule(node.target()));
      module_.remove_submodule(node.target());
    }
    copies_[&node] = &body_->graph().copy_node(node, [this](Node& input) { return Argument(*copies_.at(&input)); });
  }

  void call() {
    graph::Graph& graph = module_.graph();
    const std::string target = "hook_" + std::to_string(number_of_hook(nodes_.begin())) + "_body";
    module_.set_submodule(target, body_);
    const graph::Graph::InsertionPoint here = graph.inserting_before(nodes_.begin());
    List arguments = {graph.get_attr(target), nodes_.begin().args()[1]};
    for (Node* operand : operands_) arguments.emplace_back(*operand);
    Node& node = graph.call_function(std::string(graph::kRegisterHook), std::move(arguments),
                                     {{"layout", nodes_.end().args()[2]}}, "register_hook");
    node.meta().origin = nodes_.begin().meta().origin;
    if (nodes_.end().meta().value != nullptr) node.meta().set_value(*nodes_.end().meta().value);
    nodes_.end().replace_all_uses_with(node);
  }

  GraphModule& module_;
  const BodyNodes& nodes_;
  const std::size_t brought_;
  std::shared_ptr<GraphModule> body_ = std::make_shared<GraphModule>("Body");
  std::unordered_map<const Node*, Node*> copies_;
  std::vector<Node*> operands_;
};

bool does_nothing(const BodyNodes& nodes) {
  if (!nodes.nodes().empty() || !nodes.end().users().empty()) return false;
  bool returns_other = false;
  for_each_node(nodes.end().args()[1], [&](Node& result) { returns_other = &result != &nodes.begin(); });
  return !returns_other;
}

void erase(GraphModule& module, const BodyNodes& nodes) {
  const std::vector<Node*> taken = nodes.nodes();
  Node& begin = nodes.begin();
  module.graph().erase_node(nodes.end());
  for (auto node = taken.rbegin(); node != taken.rend(); ++node) module.graph().erase_node(**node);
  module.graph().erase_node(begin);
}

}  // namespace

void erase_hook(GraphModule& module, Node& begin, Node& end) {
  BodyNodes nodes(module, begin, end);
  nodes.hoist_numbers();
  erase(module, nodes);
}

void outline_hooks(GraphModule& module) {
  std::vector<std::pair<Node*, Node*>> hooks;
  for (Node& node : module.graph()) {
    if (node.target() == kHookBegin) hooks.emplace_back(&node, nullptr);
    if (node.target() == kHookEnd) hooks.back().second = &node;
  }
  for (const auto& [begin, end] : hooks) {
    BodyNodes nodes(module, *begin, *end);
    nodes.hoist_numbers();
    if (!does_nothing(nodes)) HookOutline(module, nodes).run();
    erase(module, nodes);
  }
}

}  // namespace rehearse::capture
