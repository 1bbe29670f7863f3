// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/subgraph_copy.h"

#include <rehearse/graph/errors.h>

namespace rehearse::capture {

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

}  // namespace rehearse::capture
