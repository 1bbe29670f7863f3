// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

// Facts about run-time sizes that come up while a captured graph is interpreted, for example in an operator's backward.
// The joint graph checks them. (The captured graph has its own nodes for the facts that it states itself.)
class StatedFacts {
 public:
  // `shapes`: null if there are no symbols.
  explicit StatedFacts(std::shared_ptr<shapes::ShapeEnv> shapes)
      : shapes_(std::move(shapes)), checked_(shapes_ != nullptr ? shapes_->asserts().size() : 0) {}

  // Adds to the end of the graph a check of each fact stated since the last call. Skips facts about sizes that no node
  // has: those are internal to operators.
  void add_checks(ExpressionNodes& expressions, graph::Graph& graph);

 private:
  const std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t checked_;  // number of asserts of `shapes` that are done
};

}  // namespace rehearse::capture
