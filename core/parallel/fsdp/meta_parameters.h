// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/unit_plan.h"

namespace rehearse::parallel {

// Parameters on the meta device, in three steps; the ranks compare what they shard between the first and the last.

// Throws c10::ValueError for a device that has no memory, and for what is on the meta device and not sharded.
void require_makeable(const torch::nn::Module& module, const FullyShardedOptions& options);

// Moves those of the plan to `from.device`, as tensors without memory. The module's tensors stay the same objects.
void move_from_meta(std::vector<PlannedUnit>& plan, const FromMeta& from);

// Gives each moved parameter of the plan this rank's rows, of values that `from.fill` makes. One parameter is whole at
// a time. `takes_first`: all ranks take those of the first one; then it blocks.
void make_rows(std::vector<PlannedUnit>& plan, const torch::nn::Module& module, const FromMeta& from,
               const ShardGroup& group, bool takes_first);

}  // namespace rehearse::parallel
