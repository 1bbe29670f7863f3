// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/parallel/shard_state.h>

#include "parallel/fsdp/sharded_model.h"

namespace rehearse::parallel {

// What FullyShardedDataParallel has under the same names. Those that gather block, and all ranks call them.
NamedTensors gather_state(const ShardedModel& model);
void load_whole_state(ShardedModel& model, const NamedTensors& state);
std::vector<SavedRows> own_rows_of_state(const ShardedModel& model);
void load_rows_of_state(ShardedModel& model, const std::vector<SavedRows>& state);

// The whole of what each rank has like its shard of the parameter, and this rank's rows of a whole.
at::Tensor gather_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& rows);
at::Tensor rows_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& whole);

}  // namespace rehearse::parallel
