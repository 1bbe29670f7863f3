// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::cli {

// The report of one of several processes. If the process left no report: how it ended.
struct RankReport {
  std::optional<Report> report;  // written by the rank itself or, if it died, by the process that watched it
  std::string ending;            // without a report: "its process was ended by SIGKILL (Killed)"
};

// Makes one report from the reports of all ranks. `ranks` is sorted by rank and not empty. If no rank has a report, the
// result names no program, seed or schedule. If each report describes all ranks and all have the same verdict, that
// verdict stands, because it is the job outcome. There are three exceptions. After TIMEOUT and INTERRUPTED, only the
// lines of all ranks together show whether a missing rank was still on its way. OK needs a headline for all ranks. For
// these three verdicts, and if a rank has no such report or the verdicts differ, the first item of this list that
// applies decides:
// - MISMATCH, because calls that differ also cause timeouts elsewhere;
// - CRASHED, also for a rank that left nothing;
// - CHECK FAILED, then RANK FAILED, each for a rank whose failure does not follow from other ranks: the rank waited for
//   nobody and lost no connection;
// - if a rank reports TIMEOUT or DEADLOCK: TIMEOUT if a missing rank came too late or might still have come, otherwise
//   DEADLOCK; if no rank line names missing ranks, the verdict that was reported;
// - RANK FAILED for any other rank, LIVELOCK, STEP BUDGET, INTERRUPTED;
// - any other verdict that is not OK.
Report merged_report(const std::vector<RankReport>& ranks);

}  // namespace rehearse::cli
