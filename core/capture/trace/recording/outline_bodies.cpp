// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/outline_bodies.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "capture/trace/recording/body_copy.h"
#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/body_nodes.h"
#include "capture/trace/recording/border_meta.h"
#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::GraphModule;
using graph::List;
using graph::Node;

constexpr std::string_view kCheckpoint = "tag_activation_checkpoint";

std::string name_of(const std::string& operation) { return operation == kCheckpoint ? "checkpoint" : operation; }

// Adds the node that calls the body, and a getitem node for each result, which replaces the result for its users.
void call_body(GraphModule& module, const BodyNodes& nodes, const BodyCopy& body, const std::string& target) {
  graph::Graph& graph = module.graph();
  const std::size_t brought = brought_before(module, nodes.end());
  const graph::Graph::InsertionPoint here = graph.inserting_before(nodes.end());
  List arguments = {graph.get_attr(target)};
  for (Node* operand : body.operands()) arguments.emplace_back(*operand);
  Node& node =
      graph.call_function(std::string(graph::kHigherOrder) + nodes.operation(), std::move(arguments),
                          {{"inputs", static_cast<std::int64_t>(nodes.inputs().size())}}, name_of(nodes.operation()));
  node.meta().origin = nodes.begin().meta().origin;
  graph::ValueMeta::List values;
  for (Node* result : nodes.results()) {
    const auto index = static_cast<std::int64_t>(values.size());
    Node& item = graph.call_function(std::string(graph::kGetItem), {node, index});
    item.meta() = at_border(*result, brought);
    item.meta().origin = node.meta().origin;
    values.push_back(*item.meta().value);
    result->replace_all_uses_with(item);
  }
  node.meta().set_value(std::move(values));
}

void make_body(GraphModule& module, const BodyNodes& nodes) {
  BodyCopy body(module, nodes);
  for (Node* input : nodes.inputs()) body.add_operand(*input);
  body.add_operands_of_nodes();
  List results;
  for (Node* result : nodes.results()) results.emplace_back(*result);
  const std::string target = name_of(nodes.operation()) + "_" + std::to_string(number_of_mark(nodes.begin())) + "_body";
  body.finish(std::move(results), target);
  call_body(module, nodes, body, target);
}

void outline(GraphModule& module, Node& begin, Node& end, std::vector<Remark>* remarks) {
  BodyNodes nodes(module, begin, end);
  nodes.hoist_numbers();
  if (nodes.nodes().empty()) {
    module.graph().erase_node(end);
    return;
  }
  if (const auto why = nodes.cannot_be_body()) {
    if (remarks != nullptr) {
      const auto where = begin.meta().origin ? begin.meta().origin->site : exec::CallSite();
      remarks->push_back(not_outlined(nodes.operation(), *why, where));
    }
    module.graph().erase_node(end);
    return;
  }
  make_body(module, nodes);
  nodes.erase();
}

}  // namespace

Remark not_outlined(const std::string& operation, const std::string& why, const exec::CallSite& where) {
  if (operation == kCheckpoint) {
    return {"the code of a checkpoint is part of the graph, and all that its backward needs is kept: " + why, where};
  }
  return {"the code of flex_attention() is part of the graph, and no node of its own: " + why, where};
}

void outline_bodies(GraphModule& module, std::vector<Remark>* remarks) {
  std::vector<Node*> marks;
  for (Node& node : module.graph()) {
    if (node.target() == kBodyBegin || node.target() == kBodyEnd) marks.push_back(&node);
  }
  std::vector<Node*> open;
  for (Node* mark : marks) {
    if (mark->target() == kBodyBegin) {
      open.push_back(mark);
      continue;
    }
    const auto begin = std::find_if(open.rbegin(), open.rend(),
                                    [&](const Node* each) { return number_of_mark(*each) == number_of_mark(*mark); });
    if (begin == open.rend()) {
      module.graph().erase_node(*mark);
      continue;
    }
    const auto first = std::prev(begin.base());
    Node* const begun = *first;
    for (auto unended = std::next(first); unended != open.end(); ++unended) module.graph().erase_node(**unended);
    open.erase(first, open.end());
    outline(module, *begun, *mark, remarks);
    module.graph().erase_node(*begun);
  }
  for (Node* unended : open) module.graph().erase_node(*unended);
}

}  // namespace rehearse::capture
