// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_map>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "graph/run/to_ivalue.h"

namespace rehearse::graph {

// What one node does when it is run; everything that does not depend on values is looked up when it is made.
class Step {
 public:
  virtual ~Step() = default;
  virtual c10::IValue run(const ValueOf& value_of) const = 0;
};

class Program;

// The programs of modules that others call: one each, however many nodes call it.
class Bodies {
 public:
  std::shared_ptr<const Program> of(const std::shared_ptr<const GraphModule>& module);

 private:
  std::unordered_map<const GraphModule*, std::shared_ptr<const Program>> made_;
};

// The step of a node that is neither placeholder nor output. Throws GraphError for what the interpreter does not know.
std::unique_ptr<Step> make_step(const Node& node, const GraphModule& module, Bodies& bodies);

// The parts of make_step(); null: it is no such node.
std::unique_ptr<Step> make_operator_step(const Node& node);
std::unique_ptr<Step> make_python_step(const Node& node);
std::unique_ptr<Step> make_higher_order_step(const Node& node, const GraphModule& module, Bodies& bodies);
std::unique_ptr<Step> make_mode_step(const Node& node);
std::unique_ptr<Step> make_torch_step(const Node& node);
std::unique_ptr<Step> make_leaf_step(const Node& node, const GraphModule& module);  // null: the module has a graph
std::unique_ptr<Step> make_method_step(const Node& node);                           // never null

}  // namespace rehearse::graph
