// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/backward_graph.h"

#include <algorithm>

#include <torch/csrc/autograd/graph_task.h>

namespace rehearse::parallel {

namespace autograd = torch::autograd;

bool is_in_backward() { return autograd::get_current_graph_task_id() >= 0; }

std::vector<std::size_t> expected_gradients(const std::vector<ShardedUnit>& units) {
  const auto* const nodes = autograd::get_current_graph_task_nodes_in_graph();
  const auto* const execution = autograd::get_current_graph_task_exec_info();
  const auto runs = [&](autograd::Node* node) {
    if (node == nullptr || nodes == nullptr || !nodes->contains(node)) return false;
    if (execution == nullptr || execution->empty()) return true;  // every node runs
    const auto found = execution->find(node);
    return found != execution->end() && found->second.needed_;
  };
  std::vector<std::size_t> counts;
  for (const auto& unit : units) {
    const auto& parameters = unit.parameters();
    counts.push_back(static_cast<std::size_t>(
        std::ranges::count_if(parameters, [&](const auto& each) { return runs(each.accumulator().get()); })));
  }
  return counts;
}

}  // namespace rehearse::parallel
