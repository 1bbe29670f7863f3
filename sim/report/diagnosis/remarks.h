// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Remarks from the record of a run: calls for whose end nobody waited, messages that were shorter than their receives,
// threads that ranks started while they initialised static variables, RunRecord::habits, and functions that only some
// ranks recompiled. If the run failed, also RunRecord::notes; if not, also calls that were left behind when other calls
// failed. Leaves out facts that `headline` already has.
std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed);

}  // namespace rehearse::sim
