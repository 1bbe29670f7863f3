// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include "cli/death/pipe.h"
#include "cli/grammar/seed_range.h"
#include "run/run_files.h"

namespace rehearse::cli {

// The folder in which a run leaves its files. The constructor makes the folder and sets aside files with the same names
// that an earlier run left, so that no such file belongs to another run. If something prevents that, for example
// because the folder is not writable, it throws UsageError with the path and the reason. A run that has something to
// leave calls keep(), which removes the earlier files. Without it, the run could not begin, and the destructor puts
// them back.
class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path folder);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  void keep() noexcept;
  // Sets the files of a run in a folder of this folder aside, too, and removes that folder if nothing else is in it.
  void set_aside_run_in(const std::filesystem::path& folder);
  // Does so for what an earlier run left in the folders of ranks. Throws UsageError, also if the folder of a rank that
  // is none of the first `ranks` has to stay: it would count as a rank of this run.
  void set_ranks_aside(int ranks = std::numeric_limits<int>::max());

  const std::filesystem::path& path() const noexcept { return folder_; }
  std::filesystem::path log() const { return sim::log_in(folder_); }

 private:
  std::filesystem::path aside() const { return folder_ / ".earlier"; }
  void set_aside(const std::filesystem::path& file);

  std::filesystem::path folder_;
  bool keeps_ = false;
};

// The folder of one rank of a real run.
std::filesystem::path rank_folder(const std::filesystem::path& folder, int rank);
// Returns 7 for "rank-7"; nothing for other names.
std::optional<int> rank_of_folder(std::string_view name);

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

  // True if another process holds the lock.
  static bool is_held(const std::filesystem::path& folder);

 private:
  static Fd open_folder(const std::filesystem::path& folder);

  Fd folder_;
};

// Removes the files of a run, and the folder if nothing else is in it. Does not follow a link. Does not throw.
void remove_seed_folder(const std::filesystem::path& folder) noexcept;

// For a sweep: makes the folder, and removes what an earlier sweep of these seeds left in its folders seed-N. Throws
// UsageError.
void prepare_sweep_folder(const std::filesystem::path& folder, const SeedRange& seeds);

}  // namespace rehearse::cli
