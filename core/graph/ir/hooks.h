// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// `hook`: a node register_hook(body, tensor, operands..., layout=flag) of `module`. True if the body returns the
// gradient that it gets: the hook only makes the gradient row-major. False also if the module lacks the body.
bool only_makes_row_major(const Node& hook, const GraphModule& module);

}  // namespace rehearse::graph
