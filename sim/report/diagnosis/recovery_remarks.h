// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// For a failed run whose ranks had resumed from a checkpoint. One line for each of the last three recoveries says which
// ranks resumed, and from which checkpoint. The last line says after which step the saved states first differed from
// those of the run without faults, or that they never differed. Empty if there was no run without faults to compare
// with (RunRecord::without_faults).
std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
