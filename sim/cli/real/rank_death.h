// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse_internal/job/rank_note.h>

namespace rehearse::cli {

// Completes the report on the death of a process that was `rank`. Call this at the moment of the death: the rank's line
// gets the current time. If the run had not begun, the line has no time. Adds what the rank had recorded: how many
// calls it had made, and which call it completed last. If the verdict is INTERRUPTED, also adds for which ranks the
// rank waited, or how and when its body had ended.
void add_what_was_known(int rank, const RankNote::Known& known, Report& report);

}  // namespace rehearse::cli
