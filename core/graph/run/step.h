// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

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

// The step of a node that is neither placeholder nor output. Throws GraphError for what the interpreter does not know.
std::unique_ptr<Step> make_step(const Node& node, const GraphModule& module);

// The parts of make_step().
std::unique_ptr<Step> make_operator_step(const Node& node);                                   // null: no operator
std::unique_ptr<Step> make_python_step(const Node& node);                                     // null: no such function
std::unique_ptr<Step> make_higher_order_step(const Node& node, const GraphModule& module);  // null: no such operator
std::unique_ptr<Step> make_mode_step(const Node& node);                                       // null: sets no mode
std::unique_ptr<Step> make_torch_step(const Node& node);                                      // null: no such function
std::unique_ptr<Step> make_leaf_step(const Node& node, const GraphModule& module);            // null: has a graph
std::unique_ptr<Step> make_method_step(const Node& node);

}  // namespace rehearse::graph
