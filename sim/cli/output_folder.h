// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "cli/death/pipe.h"
#include "cli/grammar/seed_range.h"
#include "run/run_files.h"

namespace rehearse::cli {

// The folder in which a run leaves its files. The constructor makes the folder and removes files with the same names
// that an earlier run left, so that no such file belongs to another run. If something prevents that, for example
// because the folder is not writable, it throws UsageError with the path and the reason.
class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const noexcept { return folder_; }
  std::filesystem::path log() const { return sim::log_in(folder_); }

 private:
  std::filesystem::path folder_;
};

// Makes the folder and keeps its content. Throws UsageError, also if nothing can be written into it.
void prepare_folder(const std::filesystem::path& folder);

// Makes the folder and locks it against other processes while this object exists. A run of several processes, and a
// sweep, remove the files of earlier runs. They must not remove the files of a run that is under way. Parts of one
// sweep (--shard) have seeds of their own, so they may share a folder. Throws UsageError if another process holds the
// lock or the folder cannot be made. On a file system without locks it locks nothing.
class FolderLock {
 public:
  enum class Sharing { none, parts };
  explicit FolderLock(const std::filesystem::path& folder, Sharing sharing = Sharing::none);

 private:
  Fd folder_;
};

// For a sweep: makes the folder, and removes what an earlier sweep of these seeds left in its folders seed-N. Throws
// UsageError.
void prepare_sweep_folder(const std::filesystem::path& folder, const SeedRange& seeds);

// Removes the files of a run, and the folder if nothing else is in it. Does not follow a link. Does not throw.
void remove_seed_folder(const std::filesystem::path& folder) noexcept;

}  // namespace rehearse::cli
