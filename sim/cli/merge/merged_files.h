// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <rehearse_internal/sim/output_options.h>

namespace rehearse::cli {

struct MergedFiles {
  std::vector<std::string> written;
  // One sentence for each damaged file of a rank. It names the file and says what is wrong with it.
  std::vector<std::string> damages;
};

// Combines the ranks' files in `folder` (calls, results, trace, flight recorder). Writes each combined file there if
// `output` wants it and any rank left such a file. Leaves out damaged files. Throws OutputError.
MergedFiles merge_other_files(const std::filesystem::path& folder, int ranks, const sim::OutputOptions& output);

}  // namespace rehearse::cli
