// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <iosfwd>

#include <rehearse/job/report.h>

#include "report/writers/json.h"
#include "run/run_files.h"

// Pages of runs: report.html, and those of several runs.
namespace rehearse::sim {

// The page of a run that has ended: with the calls that its log keeps, or else those that files in `stored_in` tell of.
void write_run_page(std::ostream& out, const RunResults& results);

// The run as data of a page. What the report does not say is taken from files of the same run in `folder`: an
// earlier report.html, or else its trace.json and flight_recorder.json. Files that are missing, damaged, or of another
// run are passed over.
Json stored_page_run(const Report& report, const std::filesystem::path& folder);

}  // namespace rehearse::sim
