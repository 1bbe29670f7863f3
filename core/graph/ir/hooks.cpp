// SPDX-License-Identifier: BSD-3-Clause
#include "graph/ir/hooks.h"

namespace rehearse::graph {

bool only_makes_row_major(const Node& hook, const GraphModule& module) {
  const Node* const attribute = hook.args().empty() ? nullptr : hook.args().front().node();
  const auto body = attribute != nullptr ? module.find_submodule(attribute->target()) : nullptr;
  if (body == nullptr) return false;
  const auto inputs = body->graph().placeholders();
  const Node* const output = body->graph().output_node();
  return inputs.size() == 1 && output != nullptr && output->prev() == inputs.front() && !output->input_nodes().empty();
}

}  // namespace rehearse::graph
