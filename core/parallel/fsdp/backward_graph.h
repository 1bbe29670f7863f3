// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/fsdp/sharded_unit.h"

namespace rehearse::parallel {

// Does the calling fiber run a step of a backward?
bool is_in_backward();

// In a step of a backward: of how many parameters of each unit it is going to add up gradients.
std::vector<std::size_t> expected_gradients(const std::vector<ShardedUnit>& units);

}  // namespace rehearse::parallel
