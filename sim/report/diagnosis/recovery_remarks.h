// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// For a failed run whose ranks resumed from a checkpoint: which rank resumed from which checkpoint, and after which
// step the state first differed from the run without faults. One line each; none if no rank resumed.
std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
