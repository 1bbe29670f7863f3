// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Lines from which ranks of a group called its collectives different numbers of times, in the order of their first
// calls. Empty unless call sites were captured.
std::vector<CallCounts> lines_called_unequally(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
