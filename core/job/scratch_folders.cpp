// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/scratch_folders.h>

#include <atomic>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace rehearse {
namespace {

// Each world of a process gets its own folder, even if worlds run on several threads.
std::filesystem::path temporary_folder() {
  static std::atomic<int> number = 0;
  return std::filesystem::temp_directory_path() / fmt::format("rehearse-{}-{}", getpid(), ++number);
}

}  // namespace

ScratchFolders::ScratchFolders(const std::filesystem::path& base, std::uint64_t seed)
    : is_temporary_(base.empty()),
      base_(is_temporary_ ? temporary_folder() : base),
      folder_(base_ / fmt::format("seed-{}", seed)) {}

void ScratchFolders::begin() {
  if (begun_) return;
  std::filesystem::remove_all(folder_);
  begun_ = true;
}

std::filesystem::path ScratchFolders::of(int rank) {
  begin();
  auto folder = folder_ / fmt::format("rank-{}", rank);
  if (made_.insert(rank).second) std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path ScratchFolders::shared() {
  begin();
  auto folder = folder_ / "shared";
  std::filesystem::create_directories(folder);
  return folder;
}

void ScratchFolders::remove() noexcept {
  if (!any()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  // Keeps a folder that the caller gave, even if it is empty: the process of another seed may be about to use it.
  if (is_temporary_) std::filesystem::remove(base_, ignored);
}

}  // namespace rehearse
