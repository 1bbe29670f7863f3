// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// The first node for which asked(node, its module) is true; null: none. Also looks into the module's bodies: those of
// hooks, checkpoints and the like.
template <class Asked>
const graph::Node* find_node(const graph::GraphModule& module, const Asked& asked) {
  for (const graph::Node& node : module.graph()) {
    if (asked(node, module)) return &node;
  }
  for (const auto& [name, body] : module.submodules()) {
    if (const graph::Node* const found = find_node(*body, asked)) return found;
  }
  return nullptr;
}

}  // namespace rehearse::compiler
