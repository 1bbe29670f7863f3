// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Numbers of the part as nodes of its joint graph, whatever is known of them. While a part runs on fakes, a fact that
// it states (`u0 <= 5`) is known, and so the condition is true: the joint graph has to compute it all the same.
class NumbersOfPart {
 public:
  explicit NumbersOfPart(graph::GraphModule& joint) : joint_(joint) {}

  // `node` of the part has the value of `joint`.
  void bind(const graph::Node& node, graph::Node& joint) { nodes_.insert_or_assign(&node, &joint); }

  // The argument of a node of the part, as arithmetic on what is bound. Throws GraphError where it is something else.
  graph::Argument of(const graph::Argument& argument);

 private:
  graph::Node& of(const graph::Node& node);

  graph::GraphModule& joint_;
  std::unordered_map<const graph::Node*, graph::Node*> nodes_;
};

}  // namespace rehearse::capture
