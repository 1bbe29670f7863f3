// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Maps numbers of the captured graph to nodes of its joint graph. While the captured graph runs on fakes, the facts
// that it states are assumed. So the value of a stated condition such as `u0 <= 5` is known: it is true. The joint
// graph must still compute the condition, so the condition has a node here, too.
class NumbersOfGraph {
 public:
  explicit NumbersOfGraph(graph::GraphModule& joint) : joint_(joint) {}

  // Declares that `node` of the captured graph has the value of `joint`.
  void bind(const graph::Node& node, graph::Node& joint) { nodes_.insert_or_assign(&node, &joint); }

  // Translates an argument of a node of the captured graph, using arithmetic on bound nodes. Throws GraphError if that
  // is not possible.
  graph::Argument of(const graph::Argument& argument);

 private:
  graph::Node& of(const graph::Node& node);

  graph::GraphModule& joint_;
  std::unordered_map<const graph::Node*, graph::Node*> nodes_;
};

}  // namespace rehearse::capture
