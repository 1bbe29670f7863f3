// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Finds the source lines that some ranks of a group executed more often than others to call the group's collectives.
// Leaves out lines from which no rank called more than once. The lines are in the order of their first calls. Empty if
// call sites were not captured, or if the run failed for a reason other than its calls (see calls_up_to_the_failure()).
std::vector<CallCounts> lines_called_unequally(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
