// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/numbers_of_graph.h"

#include <string_view>

#include <rehearse/graph/errors.h>

namespace rehearse::capture {
namespace {

bool is_arithmetic(const graph::Node& node) {
  if (node.op() != graph::Op::CallFunction) return false;
  const std::string_view target = node.target();
  return target.starts_with("_operator.") || target.starts_with("torch.sym_") ||
         target.starts_with("torch.ops.aten.sym_");
}

}  // namespace

graph::Argument NumbersOfGraph::of(const graph::Argument& argument) {
  return map_nodes(argument, [this](const graph::Node& node) -> graph::Argument { return of(node); });
}

graph::Node& NumbersOfGraph::of(const graph::Node& node) {
  if (const auto known = nodes_.find(&node); known != nodes_.end()) return *known->second;
  if (!is_arithmetic(node)) throw graph::GraphError(node.name(), "", "has no value in the joint graph");
  graph::List arguments;
  for (const graph::Argument& argument : node.args()) arguments.push_back(of(argument));
  graph::Node& copy = joint_.graph().call_function(node.target(), std::move(arguments));
  copy.meta() = node.meta();
  bind(node, copy);
  return copy;
}

}  // namespace rehearse::capture
