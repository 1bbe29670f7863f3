// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The qualified name of `wanted` in `module`; one of its names if it has several. Empty if `wanted` is `module` itself.
// Returns nothing if `module` does not contain `wanted`. Cost: linear in modules, shared ones counted once.
std::optional<std::string> way_to(const GraphModule& module, const GraphModule& wanted);

// Returns `wanted`. If the module already has something of that name, and it is not `same`, adds a number.
std::string free_name(const GraphModule& module, const std::string& wanted, const GraphModule* same = nullptr);

// Throws GraphError if submodules are nested deeper than kMaxNesting. Call it before a recursive walk over submodules.
// Cost: as way_to().
void check_nesting(const GraphModule& module);

}  // namespace rehearse::graph
