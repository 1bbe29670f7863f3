// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/sim/run_log.h>
#include <rehearse/sim/scenario.h>

#include "arguments.h"
#include "output_folder.h"

namespace rehearse::cli {

// The log of a run that has not ended yet; it is on disk before the run is, for runs that never come back.
sim::RunLog begun_log(const sim::Scenario& scenario, const Arguments& arguments);

// A run of very many operations is written as a trace only when the scenario says so: it takes longer to write than to
// run. Changes what write_run_files() will write, and returns what to remark; empty: nothing.
std::string leave_out_large_traces(sim::Scenario& scenario, std::uint64_t operations);

// What write_run_files() will write, for Report::files.
std::vector<std::string> files_of(const OutputFolder& folder, const sim::Scenario& scenario);

// The report's, as the scenario's [output] asks for. Throws OutputError.
void write_report_files(const OutputFolder& folder, const sim::Scenario& scenario, const Report& report);

// Writes what the scenario's [output] asks for, and the log. `world` has just made `report`. Throws
// OutputError and RunLogError.
void write_run_files(const OutputFolder& folder, const sim::Scenario& scenario, const Report& report, sim::RunLog log,
                     const World& world);

}  // namespace rehearse::cli
