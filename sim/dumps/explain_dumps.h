// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/report.h>

#include "dumps/dump.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// The report of a job of which flight recorders left these dumps, of some ranks or of all:
// - MISMATCH: calls that should have been the same, or that should have met, differ; of a group the first.
// - DEADLOCK: ranks wait for ranks that have not come, or for each other.
// - TIMEOUT: all ranks made the call alike, and it did not end: the fault lies below c10d.
// - OK: nothing in the dumps waits.
// Throws DumpError where the dumps do not belong together. `dumps`: by rank, at least one.
Report explain_dumps(const std::vector<Dump>& dumps, const Stacks& stacks);

// The same of files and folders: see read_dumps().
Report explain_dumps(const std::vector<std::string>& paths);

}  // namespace rehearse::sim
