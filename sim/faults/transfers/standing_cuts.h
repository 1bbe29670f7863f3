// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/fault_line.h>

namespace rehearse::sim {

// Describes each partition that stood at `end`: "the network is cut between ranks 0-1 and ranks 2-3 since 20 us; ".
// Empty: none stood. `lines` are the ledger of a run, and `ranks` is the size of its world.
std::string standing_cuts(const std::vector<FaultLine>& lines, int ranks, VirtualTime end);

}  // namespace rehearse::sim
