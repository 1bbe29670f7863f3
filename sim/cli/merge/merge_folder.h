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

// What lies in a folder is not what the ranks of one run left; what() names file, value and cure.
class MergeError : public UsageError {
 public:
  using UsageError::UsageError;
};

// One report of what the ranks left in folder/rank-0, rank-1, ... `ranks`: how many there were; nothing: as their
// reports say. `ends`: how their processes ended, where that is known. A rank that left no report has ended without a
// word. Throws MergeError: no reports, damaged ones, such of different runs, or of another rank than the folder says.
// Where `ends` are known, the run has just been made, and a rank with a damaged report counts as one without.
Report merged_report_of(const std::filesystem::path& folder, std::optional<int> ranks,
                        const std::vector<ProcessEnd>& ends = {});

// Writes `report`, and what the ranks' own files of other kinds come to together, into `folder` as far as `output`
// wants it, and prints the report; returns the exit code: `code`, or kExitOutput where that is 0 and a file or stdout
// could not be written.
int leave_merged(Report report, const std::filesystem::path& folder, const sim::OutputOptions& output, int code,
                 Console& console);

}  // namespace rehearse::cli
