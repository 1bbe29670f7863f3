// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The qualified name of `wanted` in `module`, one of them where there are several; empty: it is the module itself;
// none: it is not in there. Cost: linear in modules, shared ones counted once.
std::optional<std::string> way_to(const GraphModule& module, const GraphModule& wanted);

// Throws GraphError when submodules stand in one another deeper than kMaxNesting. Everything that walks over submodules
// is recursive and asks here first. Cost: as way_to().
void check_nesting(const GraphModule& module);

}  // namespace rehearse::graph
