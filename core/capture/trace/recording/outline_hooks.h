// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Moves the nodes between the two marks of each hook (body_marks.h) into a submodule, "hook_0_body" and so on. A node
// register_hook(body, tensor, operands..., layout=flag) registers this body as the tensor's hook. The operands are the
// values from outside that the hook's code uses, except the gradient. In the backward of a call, the hook gets the
// values that the operands had in that call. A hook may use the value that another hook has left (HookTracer::add());
// then the other hook's node is an operand. A hook that does nothing (it returns nothing, or its gradient without
// having read the layout) gets no node, unless another hook uses its value. Removes the marks.
void outline_hooks(graph::GraphModule& module);

// Removes a hook's nodes and marks from the graph. Keeps nodes of numbers that depend only on values from outside,
// because other code may use them.
void erase_hook(graph::GraphModule& module, graph::Node& begin, graph::Node& end);

}  // namespace rehearse::capture
