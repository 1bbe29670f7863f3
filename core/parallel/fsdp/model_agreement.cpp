// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/model_agreement.h"

#include <utility>

#include "parallel/parameter_agreement.h"

namespace rehearse::parallel {

ReducedParameters planned_parameters(const std::vector<PlannedUnit>& plan) {
  ReducedParameters all;
  for (const auto& unit : plan) {
    for (const auto& each : unit.parameters) {
      all.tensors.push_back(each.tensor);
      all.names.push_back(each.names.front());
      all.expect_sparse.push_back(false);
    }
  }
  return all;
}

// Replicas first: then the first row of the mesh has the values of its first rank's column, and hands them on.
void take_first_ranks_values(const ShardGroup& group, const torch::nn::Module& module,
                             const ReducedParameters& parameters, const std::vector<std::string>& ignored) {
  auto state = parameters.tensors;
  for (auto& buffer : module_buffers(module, ignored_names(module, ignored))) state.push_back(std::move(buffer));
  for (const auto& ranks : {group.replicas(), group.shards()}) {
    if (!ranks || ranks->getSize() == 1) continue;
    verify_same_parameters(ranks, parameters, "FSDP");
    broadcast_state(ranks, state, 0);
  }
}

}  // namespace rehearse::parallel
