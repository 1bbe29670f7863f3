// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::cli {

// What one process of several left of itself.
struct RankReport {
  std::optional<Report> report;  // of its own rank
  std::string ending;            // of one without: "its process was ended by SIGKILL (Killed)"
};

// One report of all ranks', by rank; at least one is there. Where each tells of all, and all tell the same, that is the
// verdict: they had come to a ruling before they ended. Else it is the first of these that any rank tells of:
// MISMATCH, since calls that differ end in time-outs elsewhere; CRASHED, also of a rank that left nothing; CHECK
// FAILED; RANK FAILED of a rank that waited for nobody; then, of ranks that waited, TIMEOUT where one came too late or
// may still have come, else DEADLOCK; LIVELOCK, STEP BUDGET, INTERRUPTED; OK.
Report merged_report(const std::vector<RankReport>& ranks);

}  // namespace rehearse::cli
