// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <rehearse/checks/model_state.h>

#include "parallel/fsdp/sharded_model.h"

namespace rehearse::parallel {

// What state checkers look at: this rank's shards with their places in the whole, parameters that are ignored, and
// buffers.
checks::ModelState checked_state_of(const std::shared_ptr<ShardedModel>& model);

}  // namespace rehearse::parallel
