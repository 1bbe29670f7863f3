// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

struct OutputRole {
  bool is_fixed = false;     // it must have the recorded layout
  bool is_restored = false;  // it is copied to the recorded layout, because it leaves the function or is shared later
};

// Names the graph and its back end in messages.
struct GraphOfBackend {
  std::string backend;
  std::string graph;
};

// Throws BackendMismatch if `stated` differs from `given`, the graph's own metadata, in the number of outputs, in sizes
// or dtypes, or in the layout of a fixed output.
void check_statement(const std::vector<graph::ValueMeta>& stated, const std::vector<graph::ValueMeta>& given,
                     const std::vector<OutputRole>& roles, const GraphOfBackend& whose);

// Returns a function that runs `compiled`, and then:
//   - if `checks`: compares all outputs with `stated`, and throws BackendMismatch for a difference;
//   - copies outputs that must be restored to their recorded layout, if `compiled` states another layout or none;
//   - throws BackendMismatch if it would have to copy a fixed output, or if the number of outputs is wrong.
// Returns `compiled.run` itself if no output must be compared or copied. `module`: the graph. The values of its
// placeholders and outputs give the values of symbols.
CompiledGraph::Run fitted(const CompiledGraph& compiled, const graph::GraphModule& module,
                          const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles,
                          const GraphOfBackend& whose, bool checks);

}  // namespace rehearse::compiler
