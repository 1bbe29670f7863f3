// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse_internal/job/rank_note.h>

namespace rehearse::cli {

// Completes the report on the death of a process that was `rank`, with the facts that the rank had recorded: when it
// ended, how many calls it had made, which call it completed last, and in which call it was. Call this at the moment of
// the death. If the run had not begun, the rank's line has no time.
void add_what_was_known(int rank, const RankNote::Known& known, Report& report);

}  // namespace rehearse::cli
