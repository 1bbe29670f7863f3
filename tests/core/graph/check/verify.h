// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// One thing that is wrong in a module.
struct Problem {
  std::string node;   // name; in submodules `submodule/name`; empty: the graph as a whole
  std::string field;  // "args[1]", "users", "meta.value", ...
  std::string message;
};

// `node 'add', args[1]: ...`.
std::string to_string(const Problem& problem);

// All that is wrong with a module and its submodules, in order of nodes; empty: it is well-formed. Checked are
// - topology: each input stands before its user; lists of users agree with arguments; names are unique; one output, at
//   the end, with one argument; attributes and submodules exist; a method has a self;
// - schema: arguments of operators of the dispatcher, by number, name, and where they are constants, by type;
// - metadata: as many strides as sizes, no negative sizes, expressions that have symbols, unbacked symbols only where a
//   node before or there binds them (in graphs that say where any are bound), items of lists as their list says.
// Targets that are no operators are not known here and not checked. A submodule that is shared is checked where it is
// met first. Submodules that are nested deeper than kMaxNesting are the only problem that is reported then. Cost:
// linear in nodes and arguments.
std::vector<Problem> verify(const GraphModule& module);

// Throws GraphError with all problems when there are any; node and field are the first one's.
void check_well_formed(const GraphModule& module);

}  // namespace rehearse::graph
