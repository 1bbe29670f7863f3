// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse/graph/graph_module.h>

#include "capture/trace/recording/body_nodes.h"

namespace rehearse::capture {

// Copies the nodes between two marks into a module, the body. A single node, which calls the body, will replace these
// nodes in the graph. Add the placeholders first, in the order in which that node passes its operands; then call
// finish().
class BodyCopy {
 public:
  // Both arguments must outlive this object.
  BodyCopy(graph::GraphModule& module, const BodyNodes& nodes);

  // Adds a placeholder called `name`, which stands for `node` in the body and is no operand.
  void add_placeholder(const graph::Node& node, const std::string& name);
  // Adds an operand, and a placeholder of the same name that stands for it in the body.
  void add_operand(graph::Node& node);
  // Adds an operand for each of `used` that comes from outside of the body, unless a placeholder stands for it already.
  void add_operands_among(const std::vector<graph::Node*>& used);
  // Calls add_operands_among() with the inputs of each node of the body.
  void add_operands_of_nodes();

  // Copies the nodes, and makes the body return `result`. The body becomes the submodule `name` of the module. Bodies
  // of inner nodes become submodules of this body.
  void finish(const graph::Argument& result, const std::string& name);

  const std::vector<graph::Node*>& operands() const noexcept { return operands_; }

 private:
  void copy(const graph::Node& node);
  graph::Argument mapped(const graph::Node& node) const { return *copies_.at(&node); }

  graph::GraphModule& module_;
  const BodyNodes& nodes_;
  const std::size_t brought_;  // how many nodes before the body bring history (border_meta.h)
  std::shared_ptr<graph::GraphModule> body_ = std::make_shared<graph::GraphModule>("Body");
  std::unordered_map<const graph::Node*, graph::Node*> copies_;
  std::vector<graph::Node*> operands_;
};

}  // namespace rehearse::capture
