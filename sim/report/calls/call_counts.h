// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Lines from which ranks of a group called its collectives different numbers of times, and at least one rank more than
// once, in the order of the lines' first calls. Empty if call sites were not captured, or if the run failed for a
// reason other than its calls (see calls_up_to_the_failure()).
std::vector<CallCounts> lines_called_unequally(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
