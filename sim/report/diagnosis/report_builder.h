// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Builds the report of a run, with its verdict, from the record that the run left. Leaves empty what only the caller
// knows: program, replay command, files.
Report build_report(const WorldOptions& options, const RunRecord& record);

}  // namespace rehearse::sim
