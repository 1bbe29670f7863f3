// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The qualified name of `wanted` in `module`, one of them where there are several; empty: it is the module itself;
// none: it is not in there. Cost: linear in modules, shared ones counted once.
std::optional<std::string> way_to(const GraphModule& module, const GraphModule& wanted);

// `wanted`, with a number when something in the module has this name, unless it is `same`.
std::string free_name(const GraphModule& module, const std::string& wanted, const GraphModule* same = nullptr);

// Throws GraphError when submodules stand in one another deeper than kMaxNesting. Everything that walks over submodules
// is recursive and asks here first. Cost: as way_to().
void check_nesting(const GraphModule& module);

}  // namespace rehearse::graph
