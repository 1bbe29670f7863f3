// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ostream>

#include <rehearse/comm/event_log.h>
#include <rehearse/job/report.h>

namespace rehearse::sim {

// Writes what the ranks did as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in JSON trace events:
//
// - a process for each rank;
// - a slice for each operation, from its call to its completion (or to the end of the world); operations of one
//   rank that overlap in time get a track each;
// - a slice for each span of a rank's own work (comm::SpanScope), such as the backward of a compiled graph, on a track
//   "computation";
// - for each collective that started, an arrow to every other participant from the rank that came last; for each
//   message, an arrow from the send to its receive. A send has no arrow if its peer also receives from any source with
//   the same tag, because then nobody knows which receive took which send;
// - an instant for each failed rank, and one over all ranks for a verdict other than OK.
//
// Times are microseconds of virtual time or, for a real run, of the time since it began. A slice's arguments have the
// names of c10d's flight recorder; `wait_us` is how long the call waited for other ranks. Writes one event after the
// other, each on a line, so that the text of the whole trace is never in memory. Equal runs give equal bytes. Without
// EventLogOptions::keep_all, the trace holds only the last events of each rank.
//
// Does not throw by itself; check the state of `out` afterwards.
void write_chrome_trace(std::ostream& out, const comm::EventLog& events, const Report& report);

}  // namespace rehearse::sim
