// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "cli/grammar/seed_range.h"
#include "run/run_files.h"

namespace rehearse::cli {

// Where a run leaves its files. Making one makes the folder and takes away what an earlier run left there
// under the same names, so that nothing in it belongs to another run. What stands in the way, a folder
// that cannot be written to among it, is a UsageError that names the path and the reason.
class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const noexcept { return folder_; }
  std::filesystem::path log() const { return sim::log_in(folder_); }

 private:
  std::filesystem::path folder_;
};

// For a sweep: makes the folder, and takes away what an earlier sweep of these seeds left in its folders seed-N.
// Throws UsageError.
void prepare_sweep_folder(const std::filesystem::path& folder, const SeedRange& seeds);

// Takes away the files of a run, and the folder if nothing else is in it; nothing of a link. Does not throw.
void remove_seed_folder(const std::filesystem::path& folder) noexcept;

}  // namespace rehearse::cli
