// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "cli/death/pipe.h"
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

// Makes the folder, and leaves what is in it. Throws UsageError, also where nothing can be written into it.
void prepare_folder(const std::filesystem::path& folder);

// While it lives, no other process has a lock of this folder, which it makes: a run of several processes clears what
// earlier ones left, and must not clear what one under way leaves. Throws UsageError where another has it, or the
// folder cannot be made. A file system that has no locks gives none.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Fd folder_;
};

// For a sweep: makes the folder, and takes away what an earlier sweep of these seeds left in its folders seed-N.
// Throws UsageError.
void prepare_sweep_folder(const std::filesystem::path& folder, const SeedRange& seeds);

// Takes away the files of a run, and the folder if nothing else is in it; nothing of a link. Does not throw.
void remove_seed_folder(const std::filesystem::path& folder) noexcept;

}  // namespace rehearse::cli
