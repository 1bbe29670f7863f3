// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// How many nodes of the graph bring history (graph::Metadata) in front of `end`.
std::size_t brought_before(const graph::GraphModule& module, const graph::Node& end);

// What is known of a value where it crosses the border of a body, behind `brought` such nodes.
graph::Metadata at_border(const graph::Node& node, std::size_t brought);

}  // namespace rehearse::capture
