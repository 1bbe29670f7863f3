// SPDX-License-Identifier: BSD-3-Clause
#include "file_watch.h"

#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rehearse::sim {

FileWatch::FileWatch(const ScratchFolders& scratch, std::set<std::string>& outside)
    : scratch_(std::filesystem::weakly_canonical(scratch.folder()).string() + "/"), outside_(outside) {}

// Ignores stdout and stderr, which may be files as well, and files without a name, which only this process can reach.
auto FileWatch::before_write(int, int file, std::size_t bytes) -> Answer {
  struct stat status{};
  const bool has_name =
      file > STDERR_FILENO && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 0;
  std::error_code error;
  const auto path =
      has_name ? std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file), error).string() : std::string();
  if (!path.empty() && !path.starts_with(scratch_)) outside_.insert(path);
  return {.bytes = bytes};
}

}  // namespace rehearse::sim
