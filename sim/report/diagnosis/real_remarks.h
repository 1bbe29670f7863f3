// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/sim/world_options.h>

namespace rehearse::sim {

// Names the checks and the memory limit in `options`, because a real run ignores them: "[checks] replicas, buffers and
// [world] memory work in simulations only: this real run ignored them". Empty if there are none, and for a simulation.
std::vector<std::string> real_remarks(const WorldOptions& options);

}  // namespace rehearse::sim
