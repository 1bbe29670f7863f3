// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// True for a node that only computes a value. Pure nodes are: attributes; Python functions on numbers; operators that
// return something, write to no argument and draw no random numbers; submodules whose graphs contain only pure nodes;
// higher-order operators that only run their bodies, if the bodies contain only pure nodes. All other nodes count as
// having effects: methods, unknown functions, communication, assertions, the profiler's operators, modules without a
// graph, batch norms and instance norms (which may keep running statistics).
bool is_pure(const Node& node, const GraphModule& module);

// True if the graph has a node, besides placeholders and the output, that is not pure. Then the order of nodes matters.
bool has_effects(const GraphModule& module);

// True if the nodes only compute values, change grad mode or autocast, and change tensors in place as their schemas
// say. False if a node may communicate, draw random numbers, change running statistics, or have another effect.
bool has_marked_effects_only(const GraphModule& module);

// True if a node of this graph, not of its submodules, switches grad mode on.
bool enables_gradients(const GraphModule& module);

// Erases pure nodes whose values nobody uses. Keeps placeholders. Also keeps a node that binds an unbacked symbol if a
// later node stays and has the symbol in its metadata, or in a SymExpr among its arguments. Returns the number of
// erased nodes. Cost: linear in nodes, arguments and submodules; a shared submodule counts once. Throws GraphError if
// submodules are nested deeper than kMaxNesting.
std::size_t eliminate_dead_code(GraphModule& module);

}  // namespace rehearse::graph
