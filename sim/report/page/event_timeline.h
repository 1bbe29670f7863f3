// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include <rehearse/comm/event_log.h>

#include "report/page/timeline.h"
#include "report/writers/json.h"

namespace rehearse::sim {

// Reads the timeline from the content of a trace.json, as write_chrome_trace() writes it. Throws ReportFormatError.
Timeline timeline_in_trace(const Json& trace, int ranks);

// The paths of the files that the stacks in a flight_recorder.json name, as in Timeline::files. Throws
// ReportFormatError.
std::map<std::string, std::string> files_in_flight_recorder(const Json& record);

// Makes a timeline of the calls and spans that the log still has. Looks up the source lines of all calls, which is slow
// the first time. `stuck_since`: Report::stuck_since.
Timeline timeline_of(const comm::EventLog& events, int ranks, std::optional<VirtualTime> stuck_since = {});

}  // namespace rehearse::sim
