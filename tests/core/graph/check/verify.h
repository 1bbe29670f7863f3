// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// A problem in a module.
struct Problem {
  std::string node;   // name, after its submodules' names: "a/b/add"; "" or "a/b/": the graph as a whole
  std::string field;  // "args[1]", "users", "meta.value", ...
  std::string message;
};

// Returns `node 'add', args[1]: ...`, for example.
std::string to_string(const Problem& problem);

// Returns all problems of a module and its submodules, in order of nodes; empty if it is well-formed. It checks
// - topology: each input stands before its user; lists of users agree with arguments; names are unique; a graph that
//   has nodes has one output, at the end, with one argument; attributes and submodules exist; a method has a self;
// - schema: arguments of operators of the dispatcher, by number and name, and constants by type;
// - metadata: strided tensors have as many strides as sizes; no size is negative; a size that is no number has symbols;
//   unbacked symbols occur only at the node that binds them or after it (in graphs that say where symbols are bound);
//   a node that takes an item from a list has the metadata that the list gives for this item.
// It does not check whether the functions and methods that a graph calls exist. It checks a shared submodule once, at
// its first use. If submodules are nested deeper than kMaxNesting, it reports only that. Cost: linear in nodes and
// arguments.
std::vector<Problem> verify(const GraphModule& module);

// Throws GraphError with all problems if there are any. Node and field of the error are the first problem's.
void check_well_formed(const GraphModule& module);

}  // namespace rehearse::graph
