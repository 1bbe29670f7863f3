// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/job/scratch_folders.h>

namespace rehearse::sim {

// Notes the files to which ranks write outside of their scratch folders: what one seed leaves there another may find.
// What it is given outlives it.
class FileWatch final : public exec::FileInterceptor {
 public:
  FileWatch(const ScratchFolders& scratch, std::set<std::string>& outside);

  Answer before_write(int rank, int file, std::size_t bytes) override;

 private:
  const std::string scratch_;  // with a slash at its end
  std::set<std::string>& outside_;
};

}  // namespace rehearse::sim
