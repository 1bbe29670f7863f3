// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Copies nodes of another module into a new module, one by one. The two modules share attributes.
class SubgraphCopy {
 public:
  explicit SubgraphCopy(const graph::GraphModule& from) : from_(from) {}

  // Adds a placeholder that stands for the node's value.
  void take_as_input(const graph::Node& node);
  // Copies the node. Its inputs must have been taken before, except attributes, which this function takes, too. Does
  // nothing if the node was taken already.
  void take(const graph::Node& node);
  void return_list(const graph::List& outputs);

  bool has(const graph::Node& node) const { return copies_.contains(&node); }
  const std::shared_ptr<graph::GraphModule>& module() const { return module_; }

 private:
  graph::Argument mapped(graph::Node& node);
  void share_attribute(const std::string& name);

  const graph::GraphModule& from_;
  std::shared_ptr<graph::GraphModule> module_ = std::make_shared<graph::GraphModule>();
  std::unordered_map<const graph::Node*, graph::Node*> copies_;
};

}  // namespace rehearse::capture
