// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/joint_partition.h>

namespace rehearse::compiler {

// Finds tensor hooks with captured code: nodes register_hook(body, tensor, operands...). Skips hooks that only make the
// gradient row-major, because they may run in any order with other hooks.

// The first hook, including hooks in bodies. Null if there is none.
const graph::Node* first_hook(const graph::GraphModule& module);

// The first hook whose tensor is an input of the module or, for a hook in a body, of the body. Uses of the tensor
// outside also contribute to its gradient, so the backward of the module or body does not see all of the gradient.
const graph::Node* hook_of_input(const graph::GraphModule& module);

// The first hook on a tensor that the module returns.
const graph::Node* hook_of_result(const graph::GraphModule& module);

const graph::Node* writing_hook(const graph::GraphModule& module);

// For each tensor that the forward saves after its `values`: true if the code of a hook in `part` uses it as an
// operand. Empty if there is no hook.
std::vector<bool> saved_by_hooks(const capture::JointPartition& partition, std::size_t values,
                                 const graph::GraphModule& part);

}  // namespace rehearse::compiler
