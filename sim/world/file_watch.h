// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/job/scratch_folders.h>

namespace rehearse::sim {

// Records the files outside of scratch folders to which ranks write, as far as a FileInterceptor sees the writes. A run
// with another seed may read what this run leaves in such a file. `outside` must outlive this object.
class FileWatch final : public exec::FileInterceptor {
 public:
  FileWatch(const ScratchFolders& scratch, std::set<std::string>& outside);

  Answer before_write(int rank, int file, std::size_t bytes) override;

 private:
  const std::string scratch_;  // ends with a slash
  std::set<std::string>& outside_;
};

}  // namespace rehearse::sim
