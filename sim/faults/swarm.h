// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/sim/fault.h>

namespace rehearse::sim {

// Throws FaultError if the swarm does not fit a world of so many ranks.
void require_valid(const SwarmOptions& swarm, int ranks);

// Draws the faults of one run; none if the swarm is off. The faults are optional, because nobody knows how many calls
// the run will make. Throws what the oracle throws.
std::vector<Fault> draw_swarm(const SwarmOptions& swarm, int ranks, Decisions& decisions);

}  // namespace rehearse::sim
