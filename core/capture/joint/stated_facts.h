// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

// Facts about sizes known only at run time that come up while a part is interpreted, as in the backward of an operator:
// the joint graph checks them. (What the part itself states, it has nodes for.)
class StatedFacts {
 public:
  // `shapes`: null where there are no symbols.
  explicit StatedFacts(std::shared_ptr<shapes::ShapeEnv> shapes)
      : shapes_(std::move(shapes)), checked_(shapes_ != nullptr ? shapes_->asserts().size() : 0) {}

  // At the graph's end, a check of each fact stated since the last call; not of sizes that no node has, which operators
  // keep to themselves.
  void add_checks(ExpressionNodes& expressions, graph::Graph& graph);

 private:
  const std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t checked_;  // of the ShapeEnv's asserts
};

}  // namespace rehearse::capture
