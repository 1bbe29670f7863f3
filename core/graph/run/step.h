// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_map>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {

// The action of one node. Its constructor looks up everything that does not depend on values.
class Step {
 public:
  virtual ~Step() = default;
  virtual c10::IValue run(const ValueOf& value_of) const = 0;
};

class Bodies;
class RunnableGraph;

// Makes the step of a node that is neither placeholder nor output. Throws GraphError if the interpreter does not know
// the node.
std::unique_ptr<Step> make_step(const Node& node, const GraphModule& module, Bodies& bodies);

// Caches the graphs of called modules: one for each module, however many nodes call it.
class Bodies {
 public:
  // `maker`: makes the steps of all graphs here.
  explicit Bodies(decltype(&make_step) maker = make_step) : maker_(maker) {}

  std::shared_ptr<const RunnableGraph> of(const std::shared_ptr<const GraphModule>& module);

  std::unique_ptr<Step> step(const Node& node, const GraphModule& module) { return maker_(node, module, *this); }

 private:
  decltype(&make_step) maker_;
  std::unordered_map<const GraphModule*, std::shared_ptr<const RunnableGraph>> made_;
};

}  // namespace rehearse::graph
