// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <rehearse_internal/sim/output_options.h>

namespace rehearse::cli {

struct MergedFiles {
  std::vector<std::string> written;
  // A sentence for each rank's file that is not what it should be: it names the file and what is wrong with it.
  std::vector<std::string> damages;
};

// Writes into `folder` what the ranks' files there (calls, results, trace, flight recorder) come to together, as far as
// `output` wants it and any rank left one. Leaves damaged files out. Throws OutputError.
MergedFiles merge_other_files(const std::filesystem::path& folder, int ranks, const sim::OutputOptions& output);

}  // namespace rehearse::cli
