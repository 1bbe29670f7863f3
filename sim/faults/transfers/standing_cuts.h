// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/fault_line.h>

namespace rehearse::sim {

// "the network is cut between ranks 0-1 and ranks 2-3 since 20 us; ": of each partition that stood at `end`; empty:
// none did. `lines` are a run's ledger, and `ranks` its world's.
std::string standing_cuts(const std::vector<FaultLine>& lines, int ranks, VirtualTime end);

}  // namespace rehearse::sim
