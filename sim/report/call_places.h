// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include "world/simulation.h"

namespace rehearse::sim {

// Of the groups whose calls did not come together: collectives before the one at which that showed that ranks called
// from different places, each combination of places once, the first ones of the run. Empty for other verdicts, and
// unless call sites were captured.
std::vector<CallPlaces> calls_from_different_places(const RunRecord& record, Verdict verdict);

}  // namespace rehearse::sim
