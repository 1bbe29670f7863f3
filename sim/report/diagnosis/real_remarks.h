// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/sim/world_options.h>

namespace rehearse::sim {

// "[checks] replicas, buffers and [world] memory are the simulation's: this run is real, and did without": what
// `options` ask a real run to look at that it cannot. Nothing for a simulation.
std::vector<std::string> real_remarks(const WorldOptions& options);

}  // namespace rehearse::sim
