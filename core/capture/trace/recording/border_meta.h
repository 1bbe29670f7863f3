// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// The number of nodes before `end` that bring history (graph::Metadata).
std::size_t brought_before(const graph::GraphModule& module, const graph::Node& end);

// The metadata of a value where it enters or leaves a body, after `brought` nodes that bring history.
graph::Metadata at_border(const graph::Node& node, std::size_t brought);

}  // namespace rehearse::capture
