// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <iosfwd>

#include <rehearse/job/report.h>

#include "report/writers/json.h"
#include "run/run_files.h"

// Pages of runs: report.html, and pages that combine several runs.
namespace rehearse::sim {

// Writes the page of a run that has ended. The page shows the calls that `results.explained` keeps or, if it is null,
// those of `results.events`. If both are null, the page shows the calls from a trace.json in `results.stored_in`.
void write_run_page(std::ostream& out, const RunResults& results);

// The run as data for a page. Files of the same run in `folder` fill in what the report does not have: an earlier
// report.html, or otherwise trace.json and, for the paths of source files, flight_recorder.json. Ignores files that are
// missing, damaged or of another run.
Json stored_page_run(const Report& report, const std::filesystem::path& folder);

}  // namespace rehearse::sim
