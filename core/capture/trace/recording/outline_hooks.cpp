// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/outline_hooks.h"

#include <string>
#include <utility>
#include <vector>

#include "capture/trace/recording/body_copy.h"
#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/body_nodes.h"
#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::GraphModule;
using graph::Node;

void add_registration(GraphModule& module, const BodyNodes& nodes, const BodyCopy& body, const std::string& target) {
  graph::Graph& graph = module.graph();
  const graph::Graph::InsertionPoint here = graph.inserting_before(nodes.begin());
  graph::List arguments = {graph.get_attr(target), nodes.begin().args()[1]};
  for (Node* operand : body.operands()) arguments.emplace_back(*operand);
  Node& node = graph.call_function(std::string(graph::kRegisterHook), std::move(arguments),
                                   {{"layout", nodes.end().args()[2]}}, "register_hook");
  node.meta().origin = nodes.begin().meta().origin;
  if (nodes.end().meta().value != nullptr) node.meta().set_value(*nodes.end().meta().value);
  nodes.end().replace_all_uses_with(node);
}

void outline_hook(GraphModule& module, const BodyNodes& nodes) {
  const graph::Argument& result = nodes.end().args()[1];
  BodyCopy body(module, nodes);
  body.add_placeholder(nodes.begin(), "gradient");
  body.add_operands_of_nodes();
  for_each_node(result, [&](Node& node) { body.add_operands_among({&node}); });
  const std::string target = "hook_" + std::to_string(number_of_mark(nodes.begin())) + "_body";
  body.finish(result, target);
  add_registration(module, nodes, body, target);
}

// A hook that has read the gradient's layout counts as doing something, even if it returned the gradient itself. For
// example, contiguous() returns a row-major gradient itself, but it would copy a gradient that is not row-major.
bool does_nothing(const BodyNodes& nodes) {
  if (!nodes.nodes().empty() || !nodes.end().users().empty()) return false;
  const bool layout_was_read = *nodes.end().args()[2].get_if<bool>();
  bool changes_gradient = false;
  for_each_node(nodes.end().args()[1],
                [&](Node& result) { changes_gradient = layout_was_read || &result != &nodes.begin(); });
  return !changes_gradient;
}

}  // namespace

void erase_hook(GraphModule& module, Node& begin, Node& end) {
  BodyNodes nodes(module, begin, end);
  nodes.hoist_numbers();
  nodes.erase();
  module.graph().erase_node(begin);
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
    if (!does_nothing(nodes)) outline_hook(module, nodes);
    nodes.erase();
    module.graph().erase_node(*begin);
  }
}

}  // namespace rehearse::capture
