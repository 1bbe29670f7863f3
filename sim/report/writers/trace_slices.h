// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

struct Slice {
  comm::Event event;
  VirtualTime end{};  // end of the call, or of the world
  int lane = 0;       // track within the rank; slices of one track do not overlap
};

// The event as views of the run show it. `stuck_since`: Report::stuck_since. If a timeout ended the call after that,
// the call never ends.
comm::Event shown(comm::Event event, std::optional<VirtualTime> stuck_since);

// All events that the log keeps, in order of the calls, as shown() shows them.
std::vector<Slice> slices_of(const comm::EventLog& events, VirtualTime end_of_world,
                             std::optional<VirtualTime> stuck_since = {});

// Leads from one slice to another, by index: the call of slice `to` waited for the call of slice `from`.
struct Arrow {
  std::size_t from = 0;
  std::size_t to = 0;
};

// For each collective that started: an arrow to every other rank from the rank that came last. For each send: an arrow
// to its receive, unless its peer also receives from any source with the same tag.
std::vector<Arrow> arrows_of(const comm::EventLog& events, const std::vector<Slice>& slices);

}  // namespace rehearse::sim
