// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// Whether a node does nothing but give a value: attributes; Python's functions on numbers; operators that return
// something, write to no argument and draw no random numbers; submodules and higher-order bodies of such nodes alone.
// All else counts as having effects: methods, unknown functions, communication, norms that keep running statistics.
bool is_pure(const Node& node, const GraphModule& module);

// Whether the graph has a node that is not pure: it matters in which order its nodes run. Cost: linear in nodes.
bool has_effects(const GraphModule& module);

// Whether its nodes do nothing but give values, change modes, and change tensors in place, as their schemas say: no
// communication, no random numbers, no running statistics.
bool has_marked_effects_only(const GraphModule& module);

// Whether a node switches gradients on, in this graph and not in its submodules.
bool enables_gradients(const GraphModule& module);

// Erases pure nodes whose values nobody uses. Placeholders stay, and so do nodes that bind an unbacked symbol that a
// node left after them has in its metadata or in a SymExpr among its arguments. Returns how many went. Cost: linear in
// nodes, arguments and submodules, shared ones counted once. Throws GraphError when submodules are nested deeper than
// kMaxNesting.
std::size_t eliminate_dead_code(GraphModule& module);

}  // namespace rehearse::graph
