// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Makes a submodule of the nodes between the two marks of each hook (body_marks.h), "hook_0_body" and so on, and one
// node that registers it, register_hook(body, tensor, operands..., layout=flag). Operands are what the hook's code uses
// from outside, besides the gradient: whatever they are in a call is what the hook gets in its backward. The marks are
// gone afterwards. A hook that uses what another one leaves has that one's node as an operand. A hook that returns its
// gradient as it is, and does nothing else, leaves no node.
void outline_hooks(graph::GraphModule& module);

// Takes a hook's nodes out of the graph, marks included. Numbers that are made of values from outside stay, in front.
void erase_hook(graph::GraphModule& module, graph::Node& begin, graph::Node& end);

}  // namespace rehearse::capture
