// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Builds the report of a run, with its verdict, from the record that the run left. Leaves empty what only the caller
// knows: program, replay command, files. `lacks_places`: set to true if the report would name more places in the source
// if the run had recorded them (WorldOptions::call_sites).
Report build_report(const WorldOptions& options, const RunRecord& record, bool* lacks_places = nullptr);

}  // namespace rehearse::sim
