// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include <rehearse/graph/graph.h>

namespace rehearse::graph {

// The results of the graph: the items if it returns a list, otherwise the one value. Empty if it returns nothing. Valid
// until the graph's output node changes.
std::span<const Argument> results_of(const Graph& graph) noexcept;

// True if the graph returns a list, even one of a single item.
bool returns_list(const Graph& graph) noexcept;

}  // namespace rehearse::graph
