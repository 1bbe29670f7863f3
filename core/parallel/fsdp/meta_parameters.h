// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/unit_plan.h"

namespace rehearse::parallel {

// These three functions, called in this order, give memory to parameters on the meta device. Between move_from_meta()
// and make_rows(), the caller checks (with init_sync) that all ranks shard the same parameters.

// Throws c10::ValueError for a device without memory, and for ignored parameters and buffers on the meta device.
void require_makeable(const torch::nn::Module& module, const FullyShardedOptions& options);

// Moves the plan's parameters on the meta device to `from.device`, as tensors without memory. The module's tensors stay
// the same objects.
void move_from_meta(std::vector<PlannedUnit>& plan, const FromMeta& from);

// Gives each moved parameter of the plan this rank's rows of the values that `from.fill` makes. Only one parameter is
// whole at a time. Without `from.fill`, the rows have undefined contents. `takes_first`: all ranks take the values of
// the first rank. In that case, the call blocks.
void make_rows(std::vector<PlannedUnit>& plan, const torch::nn::Module& module, const FromMeta& from,
               const ShardGroup& group, bool takes_first);

}  // namespace rehearse::parallel
