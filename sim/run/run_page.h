// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <iosfwd>

#include <rehearse/job/report.h>

#include "report/writers/json.h"
#include "run/run_files.h"

// Pages of runs: report.html, and pages that combine several runs.
namespace rehearse::sim {

// Writes the page of a finished run. The page shows the calls that the run's event log keeps or, if that log is lost,
// the calls from files in the folder `results.stored_in`.
void write_run_page(std::ostream& out, const RunResults& results);

// The run as data for a page. Files of the same run in `folder` fill in what the report does not have: an earlier
// report.html, or otherwise trace.json and, for the paths of source files, flight_recorder.json. Ignores files that are
// missing or damaged, and a page or a trace of another run.
Json stored_page_run(const Report& report, const std::filesystem::path& folder);

}  // namespace rehearse::sim
