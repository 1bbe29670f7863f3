// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "graph/run/step.h"

namespace rehearse::graph {

// The steps of nodes that only Dynamo writes. Each function returns null if it does not handle the node.

// torch.*, torch._C._nn.* and torch.nn.functional.*
std::unique_ptr<Step> make_torch_step(const Node& node);
// The leaf modules Linear, Embedding and ReLU; null if the submodule has a graph.
std::unique_ptr<Step> make_leaf_step(const Node& node, const GraphModule& module);
// A method of tensors; never null.
std::unique_ptr<Step> make_method_step(const Node& node);
// Python's functions, also on tensors.
std::unique_ptr<Step> make_step_on_tensors(const Node& node);

}  // namespace rehearse::graph
