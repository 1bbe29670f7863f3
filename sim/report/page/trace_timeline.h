// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "report/page/timeline.h"
#include "report/writers/json.h"

namespace rehearse::sim {

// Reads the timeline from the content of a trace.json, as write_chrome_trace() writes it. Throws ReportFormatError.
Timeline timeline_in_trace(const Json& trace, int ranks);

// The paths of the files that the stacks in a flight_recorder.json name, as in Timeline::files. Throws
// ReportFormatError.
std::map<std::string, std::string> files_in_flight_recorder(const Json& record);

}  // namespace rehearse::sim
