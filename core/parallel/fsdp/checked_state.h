// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <rehearse/checks/model_state.h>

#include "parallel/fsdp/sharded_model.h"

namespace rehearse::parallel {

// The state for state checkers: this rank's shards with their positions in the whole, ignored parameters, and buffers.
checks::ModelState checked_state_of(const std::shared_ptr<ShardedModel>& model);

}  // namespace rehearse::parallel
