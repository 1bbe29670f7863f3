// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

inline constexpr std::size_t kEventLinesShown = 10;  // the last calls of a run

// The last calls of a run, oldest first. Ranks that made the same call at the same time share a line.
std::vector<std::string> last_event_lines(const comm::EventLog& events, const Places& places);

}  // namespace rehearse::sim
