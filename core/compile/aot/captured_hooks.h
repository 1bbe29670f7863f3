// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/joint_partition.h>

namespace rehearse::compiler {

// Hooks of tensors whose code was captured: nodes register_hook(body, tensor, operands...).

// The first one, in bodies too. Null: there is none.
const graph::Node* first_hook(const graph::GraphModule& module);

// The first one whose tensor is made outside of the module: all of the tensor's gradient does not come together there.
const graph::Node* hook_of_input(const graph::GraphModule& module);

// The first one whose tensor the module returns.
const graph::Node* hook_of_result(const graph::GraphModule& module);

// The first one whose code writes to a tensor.
const graph::Node* writing_hook(const graph::GraphModule& module);

// For each tensor that the forward saves behind its `values`: whether the code of a hook of `part` has it as an
// operand. Empty: there is no hook.
std::vector<bool> saved_by_hooks(const capture::JointPartition& partition, std::size_t values,
                                 const graph::GraphModule& part);

}  // namespace rehearse::compiler
