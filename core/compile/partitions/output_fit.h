// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// What becomes of an output of a compiled graph.
struct OutputRole {
  bool is_fixed = false;     // it must lie as the graph has it
  bool is_restored = false;  // it is brought there, because it leaves the function or is shared later
};

// Whose outputs they are, for messages.
struct GraphOfBackend {
  std::string backend;
  std::string graph;
};

// Throws BackendMismatch where `stated` has another number of outputs, other sizes or another dtype than `given`, what
// the graph gives, or places a fixed output otherwise.
void check_statement(const std::vector<graph::ValueMeta>& stated, const std::vector<graph::ValueMeta>& given,
                     const std::vector<OutputRole>& roles, const GraphOfBackend& whose);

// Runs `compiled` and then: compares all outputs with `stated`, if `checks`, and throws BackendMismatch for a
// difference; brings outputs that are to be restored to where `recorded` has them, if `compiled` states that they are
// elsewhere or states nothing; throws BackendMismatch for a fixed one that would have to be brought there. `compiled`
// itself where nothing of that can happen. `module`: the graph, whose placeholders tell the values of symbols.
CompiledGraph::Run fitted(const CompiledGraph& compiled, const graph::GraphModule& module,
                          const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles,
                          const GraphOfBackend& whose, bool checks);

}  // namespace rehearse::compiler
