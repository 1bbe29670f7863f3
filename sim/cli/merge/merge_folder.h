// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/sim/output_options.h>

#include "cli/grammar/usage_error.h"
#include "cli/launch/processes.h"
#include "cli/terminal/console.h"

namespace rehearse::cli {

// The folder does not hold what the ranks of one run left. what() names the file or the folder, and says what is wrong
// with it.
class MergeError : public UsageError {
 public:
  using UsageError::UsageError;
};

// Merges what the ranks left in folder/rank-0, rank-1, ... into one report. `ranks`: the number of ranks; nothing:
// taken from their reports. `ends`: how their processes ended, if that is known (then pass `ranks`, too). A rank
// without a report counts as CRASHED. Throws MergeError if there are no reports, if one is damaged, or if they belong
// to different runs or to other ranks than the folders say. If `ends` is known, the run has just been made: then
// missing reports are no error, and a damaged report counts as a missing one.
Report merged_report_of(const std::filesystem::path& folder, std::optional<int> ranks,
                        const std::vector<ProcessEnd>& ends = {});

// Writes the report's files into `folder`, and combines the ranks' other files there (calls, results, trace, flight
// recorder). Leaves out files that `output` does not want. Prints the report. Returns the exit code: `code`, or
// kExitOutput if that is 0 and a file or stdout could not be written.
int leave_merged(Report report, const std::filesystem::path& folder, const sim::OutputOptions& output, int code,
                 Console& console);

}  // namespace rehearse::cli
