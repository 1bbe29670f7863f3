// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/parallel/shard_state.h>

#include "parallel/fsdp/sharded_model.h"

namespace rehearse::parallel {

// The implementations of FullyShardedDataParallel's functions of similar names. gather_state() and gather_like() block,
// and all ranks must call them.
NamedTensors gather_state(const ShardedModel& model);
void load_whole_state(ShardedModel& model, const NamedTensors& state);
std::vector<SavedRows> own_rows_of_state(const ShardedModel& model);
void load_rows_of_state(ShardedModel& model, const std::vector<SavedRows>& state);

// For tensors that are sharded like the parameter: gather_like() joins the `rows` of all ranks and returns the whole
// tensor; rows_like() returns this rank's rows of a whole tensor.
at::Tensor gather_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& rows);
at::Tensor rows_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& whole);

}  // namespace rehearse::parallel
