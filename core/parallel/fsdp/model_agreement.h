// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/unit_plan.h"
#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// All parameters of the plan, each once.
ReducedParameters planned_parameters(const std::vector<PlannedUnit>& plan);

// Verifies that all ranks have the same parameters in the same units, and agree on which are trained. Then copies the
// first rank's buffers and the plan's parameters to all ranks, except the parameters that make_rows() will fill.
// Blocks. Throws c10::Error, which names the first parameter that differs or, if ranks have different numbers of
// parameters, both numbers.
void take_first_ranks_values(const ShardGroup& group, const torch::nn::Module& module,
                             const std::vector<PlannedUnit>& plan, const std::vector<std::string>& ignored);

}  // namespace rehearse::parallel
