// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/resolve_left_fakes.h"

#include <algorithm>
#include <vector>

#include <rehearse_internal/graph/dead_code.h>
#include <rehearse_internal/graph/operators.h>

#include "compile/partitions/eager_backend.h"
#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {
namespace {

// True if running the graph has no side effect: it draws no numbers, does not communicate and changes nothing outside.
// A side effect would be wrong, because the function will run again in the next call. False if the graph is null,
// because then nobody knows what the code did.
bool only_computes(const graph::GraphModule* module) {
  return module != nullptr && graph::has_marked_effects_only(*module) &&
         !MemoryClasses(*module).writes_to_inputs(*module);
}

// Removes operators that the results do not need, including draws and communication. Does nothing if an operator
// writes, because a result may lie in the memory that it writes to.
void keep_what_results_need(graph::GraphModule& module) {
  std::vector<graph::Node*> operators;
  for (graph::Node& node : module.graph()) {
    const auto op = graph::find_operator(node.target());
    if (op && op->schema().is_mutable()) return;
    if (op || node.target() == "_operator.getitem") operators.push_back(&node);
  }
  for (auto node = operators.rbegin(); node != operators.rend(); ++node) {
    if ((*node)->users().empty()) module.graph().erase_node(**node);
  }
}

}  // namespace

bool make_left_fakes_real(const capture::LeftFakes& left, const std::vector<c10::IValue>& inputs) {
  return left.make_real([&](const capture::Segment& segment) {
    if (segment.module) keep_what_results_need(*segment.module);
    const auto is_missing = [](const c10::IValue& input) { return input.isNone(); };
    if (std::ranges::any_of(inputs, is_missing)) return std::vector<c10::IValue>();
    if (!only_computes(segment.module.get())) return std::vector<c10::IValue>();
    return by_operators(segment.module)(inputs);
  });
}

}  // namespace rehearse::compiler
