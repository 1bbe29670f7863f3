// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ostream>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

// Writes what the ranks called as c10d's flight recorder would have dumped it, in JSON, for the tools that people have
// for dumps of real jobs: the recorder's version, all groups once (so that the file grows with the calls, not with the
// square of the ranks), and for each of the `ranks` of the world the recorder's entries, one a line. docs/GUIDE.md has
// the few lines that make a dump for each rank of it, which the recorder's analyzer reads.
//
// Frames are there for operations whose call site was captured. Times are nanoseconds of virtual time. Equal runs give
// equal bytes. The log must have been kept whole (EventLogOptions::keep_all): the analyzer expects all ranks to begin
// at their first calls.
//
// Does not throw by itself; look at the state of `out` afterwards.
void write_flight_recorder(std::ostream& out, const comm::EventLog& events, int ranks);

}  // namespace rehearse::sim
