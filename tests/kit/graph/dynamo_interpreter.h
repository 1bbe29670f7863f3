// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include "graph/run/runnable_graph.h"

namespace rehearse::graph {

// Interpreter for graphs that Dynamo recorded. Besides what Interpreter runs, it runs
// - methods of tensors, torch.* and torch._C._nn.* that are operators of ATen: each call chooses the overload by the
//   kinds of the arguments; methods that ask for sizes, strides or counts (size(), numel(), ...) or that cast (float(),
//   ...);
// - from torch.nn.functional: relu, dropout, layer_norm, group_norm, batch_norm, embedding; torch._check;
// - Python's operators on tensors, and _operator.getitem of tensors;
// - the leaf modules Linear, Embedding and ReLU (never in place).
class DynamoInterpreter {
 public:
  // Throws GraphError for what it does not support, naming node and field.
  explicit DynamoInterpreter(std::shared_ptr<const GraphModule> module);

  // As Interpreter::run().
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  // As Interpreter::set_observer().
  void set_observer(std::function<void(const Node&, const c10::IValue&)> observer);

 private:
  std::unique_ptr<RunnableGraph> graph_;
};

}  // namespace rehearse::graph
