// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <rehearse_internal/sim/output_options.h>

namespace rehearse::cli {

// Writes into `folder` what the ranks' files there (calls, results, trace, flight recorder) come to together, as far as
// `output` wants it and any rank left one; a file that is not what it should be is passed over. Returns the files
// written. Throws OutputError.
std::vector<std::string> merge_other_files(const std::filesystem::path& folder, int ranks,
                                           const sim::OutputOptions& output);

}  // namespace rehearse::cli
