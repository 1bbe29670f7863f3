// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// Of a failed run whose ranks took up from a checkpoint: who took up from what, and behind which step the state was
// first another one than without faults. A line each; none where no rank did.
std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
