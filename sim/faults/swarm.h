// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/sim/fault.h>

namespace rehearse::sim {

// Throws FaultError where a swarm is not for a world of so many ranks.
void require_valid(const SwarmOptions& swarm, int ranks);

// The faults of one run; none where the swarm is off. They need not take place: who knows how many calls there are?
// Throws what the oracle throws.
std::vector<Fault> draw_swarm(const SwarmOptions& swarm, int ranks, Decisions& decisions);

}  // namespace rehearse::sim
