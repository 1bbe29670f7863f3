// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/fsdp/sharded_unit.h"

namespace rehearse::parallel {

// Whether the calling fiber runs a step of a backward.
bool is_in_backward();

// For each unit, how many of its parameters' gradients the current backward will accumulate. Call it in a step of a
// backward.
std::vector<std::size_t> expected_gradients(const std::vector<ShardedUnit>& units);

}  // namespace rehearse::parallel
