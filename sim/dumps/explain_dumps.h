// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/report.h>

#include "dumps/dump.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// Makes a report from the flight recorder dumps that some or all ranks of a job left:
// - MISMATCH: the ranks made their groups differently; calls that should agree differ; a send and its receive differ;
//   or the splits of an all-to-all do not fit together. Only the first such difference of a group counts.
// - DEADLOCK: ranks wait for ranks that have not come, or for each other.
// - TIMEOUT: all ranks made the call alike, and it did not end: the fault lies below c10d.
// - OK: no call in the dumps waits.
// Throws DumpError if the dumps do not belong together. `dumps`: sorted by rank, at least one.
Report explain_dumps(const std::vector<Dump>& dumps, const Stacks& stacks);

// The same for files and folders: see read_dumps().
Report explain_dumps(const std::vector<std::string>& paths);

}  // namespace rehearse::sim
