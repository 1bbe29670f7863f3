// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ostream>

#include <rehearse/comm/event_log.h>
#include <rehearse/job/report.h>

namespace rehearse::sim {

// Writes the ranks' calls in the JSON form of a dump by c10d's flight recorder, for the tools that people have for
// dumps of real jobs. The file holds the recorder's version, the facts by which a page recognizes the run, all groups
// once and, for each rank of the world, the recorder's entries, one on a line. If each rank listed all its groups, the
// file would grow with the square of the ranks. The recorder's analyzer expects one dump for each rank. docs/GUIDE.md
// shows the few lines that make such dumps from this file.
//
// Operations whose call site was captured have frames. Times are nanoseconds of virtual time or, for a real run, of the
// time since it began. Equal runs give equal bytes. The log must hold every event (EventLogOptions::keep_all), because
// the analyzer expects all ranks to begin at their first calls.
//
// Does not throw by itself; check the state of `out` afterwards.
void write_flight_recorder(std::ostream& out, const comm::EventLog& events, const Report& report);

}  // namespace rehearse::sim
