// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/comm/event_log.h>

#include "report/page/timeline.h"

namespace rehearse::sim {

// Makes a timeline of the calls and spans that the log still has. Looks up the source lines of all calls, which is slow
// the first time. `stuck_since`: Report::stuck_since.
Timeline timeline_of(const comm::EventLog& events, int ranks, std::optional<VirtualTime> stuck_since = {});

}  // namespace rehearse::sim
