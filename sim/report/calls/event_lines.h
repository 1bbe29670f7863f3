// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/verdict.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

inline constexpr std::size_t kEventLinesShown = 10;  // the last calls of a run

// The value of Report::stuck_since.
std::optional<VirtualTime> stuck_since(const exec::RunOutcome& outcome, Verdict verdict);

// The last calls of a run, oldest first. Ranks that made the same call at the same time share a line. In a deadlock or
// livelock the calls in which ranks were stuck "never complete", even if timeouts ended the waits for them later.
std::vector<std::string> last_event_lines(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
