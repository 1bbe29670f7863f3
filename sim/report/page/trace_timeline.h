// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "report/page/timeline.h"

namespace rehearse::sim {

// The timeline in a trace.json, as write_chrome_trace() writes it, of so many ranks. Throws ReportFormatError.
Timeline timeline_in_trace(std::string_view trace, int ranks);

// Where the files lie that the stacks in a flight_recorder.json name, as in Timeline::files. Throws ReportFormatError.
std::map<std::string, std::string> files_in_flight_recorder(std::string_view record);

}  // namespace rehearse::sim
