// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "report/page/timeline.h"
#include "report/writers/json.h"

namespace rehearse::sim {

// The timeline in what a trace.json holds, as write_chrome_trace() writes it, of so many ranks. Throws
// ReportFormatError.
Timeline timeline_in_trace(const Json& trace, int ranks);

// Where the files lie that the stacks in a flight_recorder.json name, as in Timeline::files. Throws ReportFormatError.
std::map<std::string, std::string> files_in_flight_recorder(const std::string& record);

}  // namespace rehearse::sim
