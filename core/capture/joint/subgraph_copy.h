// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// A module that takes over nodes of another one, node by node. Attributes that it fetches are shared.
class SubgraphCopy {
 public:
  explicit SubgraphCopy(const graph::GraphModule& from) : from_(from) {}

  // A placeholder of the new module stands for the node's value.
  void take_as_input(const graph::Node& node);
  // The node itself; its inputs are taken before, and attributes on demand. Nothing happens when it is there.
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
