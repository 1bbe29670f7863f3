// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// For a failed run whose ranks had resumed from a checkpoint: a line for each of the last three recoveries (which ranks
// resumed, and from which checkpoint), and after which step the saved state first differed from that of the run without
// faults. Empty if there was no run without faults to compare with (RunRecord::without_faults).
std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
