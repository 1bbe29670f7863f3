// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

// One operation of one rank as a trace shows it.
struct Slice {
  comm::Event event;
  VirtualTime end{};  // of the call, or of the world
  int lane = 0;       // track within the rank: slices of one track do not overlap
};

// All events that are kept, in order of the calls.
std::vector<Slice> slices_of(const comm::EventLog& events, VirtualTime end_of_world);

// From one slice to another, by index: what the second had to wait for.
struct Arrow {
  std::size_t from = 0;
  std::size_t to = 0;
};

// For each collective that started: from the last rank to arrive to each other one. For each send: to its
// receive.
std::vector<Arrow> arrows_of(const comm::EventLog& events, const std::vector<Slice>& slices);

}  // namespace rehearse::sim
