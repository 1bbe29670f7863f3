// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/model_agreement.h"

#include <cstdint>
#include <utility>

#include <rehearse/hash/word_hash.h>

#include "parallel/parameter_agreement.h"

namespace rehearse::parallel {
namespace {

// One mark (see MarkedParameters) for each parameter, in the order of planned_parameters(). Each mark has 63 bits, so
// that it can be negated.
std::vector<std::int64_t> marks_of(const std::vector<PlannedUnit>& plan) {
  std::vector<std::int64_t> marks;
  for (const auto& unit : plan) {
    for (const auto& each : unit.parameters) {
      WordHash hash(marks.size() + 1);
      hash.add(unit.path);
      for (const auto& name : each.names) hash.add(name);
      hash.add(std::uint64_t{each.tensor.requires_grad()});
      marks.push_back(static_cast<std::int64_t>(hash.value() >> 1));
    }
  }
  return marks;
}

}  // namespace

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

// The groups of replicas broadcast first. Then all ranks with the first rank's shard have the first rank's values. Each
// of them broadcasts these values to its group of shards.
void take_first_ranks_values(const ShardGroup& group, const torch::nn::Module& module,
                             const std::vector<PlannedUnit>& plan, const std::vector<std::string>& ignored) {
  const auto parameters = planned_parameters(plan);
  const MarkedParameters how{"FSDP", marks_of(plan), "its names, its unit, or whether it requires grad"};
  std::vector<at::Tensor> state;
  for (const auto& unit : plan) {
    for (const auto& each : unit.parameters) {
      if (!each.is_made) state.push_back(each.tensor);
    }
  }
  for (auto& buffer : module_buffers(module, ignored_names(module, ignored))) state.push_back(std::move(buffer));
  for (const auto& ranks : {group.replicas(), group.shards()}) {
    if (!ranks || ranks->getSize() == 1) continue;
    verify_same_parameters(ranks, parameters, how);
    broadcast_state(ranks, state, 0);
  }
}

}  // namespace rehearse::parallel
