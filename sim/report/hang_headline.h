// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/comm/wait_for_graph.h>
#include <rehearse/job/report.h>

namespace rehearse::sim {

// What the first line says of ranks that could not go on: the culprits, where they stand, and who waits for them in what.
// First the ranks that have ended, then a cycle, then dead ends. `lines`: for where each rank stands. Empty when nobody
// is blocked.
std::string hang_headline(const comm::WaitAnalysis& analysis, const std::vector<RankLine>& lines);

}  // namespace rehearse::sim
