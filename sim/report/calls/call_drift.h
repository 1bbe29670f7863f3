// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Looks at the groups whose calls did not meet. Finds ranks whose calls are, from some call on, those of the others one
// or a few places later or earlier, by the lines from which they were made. Then calls of one kind have met that were
// not meant for each other, up to the one that failed. A line each; empty for other verdicts, and unless call sites
// were captured.
std::vector<std::string> drifts_of(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
