// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Draws the verdict from what a run left behind, and says who and where. What only the caller knows (program, replay
// command, files) is left empty.
Report build_report(const WorldOptions& options, const RunRecord& record);

}  // namespace rehearse::sim
