// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Makes one node of what torch::nn::Linear does in the caller's code: t() of the weight and addmm, or t() and matmul
// and, where there is a bias, add_. The node calls invoke_subgraph with a submodule "linear_0_body", "linear_1_body",
// ... that holds the nodes as they were, and input, weight and bias as operands: what counts parameters or cuts the
// graph sees one step, as in PyTorch, and the operators that run are the same.
void fold_linear(graph::GraphModule& module);

}  // namespace rehearse::capture
