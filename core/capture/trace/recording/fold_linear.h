// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Folds the operators of torch::nn::Linear into one node: t() of the weight and addmm, or t(), matmul and, with a bias,
// add_. The new node calls invoke_subgraph with a submodule ("linear_0_body", "linear_1_body", ...) that contains these
// operators. The operands of the node are input, weight and bias. Code that counts parameters or splits the graph then
// sees one step, as in PyTorch, and the same operators run.
void fold_linear(graph::GraphModule& module);

}  // namespace rehearse::capture
