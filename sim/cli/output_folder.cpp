// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/grammar/usage_error.h"
#include "record/output_file.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kRankFolder = "rank-";

std::string cannot_be(const std::filesystem::path& path, std::string_view what, const std::string& why) {
  return fmt::format("{}: cannot be {}: {}; --output=DIR or the scenario's [output] directory names another folder",
                     path.string(), what, why);
}

void require_writable(const std::filesystem::path& folder) {
  if (access(folder.c_str(), W_OK | X_OK) != 0) throw UsageError(cannot_be(folder, "written to", std::strerror(errno)));
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(cannot_be(folder, "made", error.message()));
}

// Returns 7 for "seed-7"; nothing for other names, such as "seed-007".
std::optional<std::uint64_t> seed_of_folder(std::string_view name) {
  constexpr std::string_view kPrefix = "seed-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto digits = name.substr(kPrefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (error != std::errc() || fmt::format("{}", seed) != digits) return std::nullopt;
  return seed;
}

// Removes unfinished files, which remain if a process is killed while it writes.
void remove_parts(const std::filesystem::path& folder) noexcept {
  const auto files = sim::all_files_in(folder);
  std::error_code ignored;
  std::vector<std::filesystem::path> parts;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const auto is_part = [&](const auto& file) { return sim::is_part_of(entry->path(), file); };
    if (std::ranges::any_of(files, is_part)) parts.push_back(entry->path());
  }
  for (const auto& part : parts) std::filesystem::remove(part, ignored);
}

std::vector<std::filesystem::path> files_of_seed(const std::filesystem::path& folder) {
  auto files = sim::all_files_in(folder);
  files.push_back(folder / "output.txt");
  return files;
}

}  // namespace

OutputFolder::OutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  make_folder(folder_);
  require_writable(folder_);
  std::error_code error;
  const auto files = sim::all_files_in(folder_);
  // Before the first file goes.
  for (const auto& file : files) {
    if (std::filesystem::is_directory(std::filesystem::symlink_status(file, error)))
      throw UsageError(cannot_be(file, "removed", "Is a directory"));
  }
  std::filesystem::remove_all(aside(), error);
  for (const auto& file : files) set_aside(file);
  remove_parts(folder_);
}

OutputFolder::~OutputFolder() {
  if (keeps_) return;
  std::error_code ignored;
  for (const auto& file : sim::all_files_in(folder_)) std::filesystem::remove(file, ignored);
  remove_parts(folder_);
  for (std::filesystem::recursive_directory_iterator entry(aside(), ignored), end; entry != end;
       entry.increment(ignored)) {
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) continue;
    const auto file = folder_ / entry->path().lexically_relative(aside());
    std::filesystem::create_directories(file.parent_path(), ignored);
    std::filesystem::rename(entry->path(), file, ignored);
  }
  keep();
}

void OutputFolder::keep() noexcept {
  keeps_ = true;
  std::error_code ignored;
  std::filesystem::remove_all(aside(), ignored);
}

void OutputFolder::set_aside(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) return;
  const auto place = aside() / file.lexically_relative(folder_);
  std::filesystem::create_directories(place.parent_path(), error);
  if (!error) std::filesystem::rename(file, place, error);
  if (error) throw UsageError(cannot_be(file, "removed", error.message()));
}

void OutputFolder::set_aside_run_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  // Leave a symbolic link alone: a user made it.
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored))) return;
  for (const auto& file : files_of_seed(folder)) set_aside(file);
  remove_parts(folder);
  std::filesystem::remove(folder, ignored);
}

void OutputFolder::set_ranks_aside(int ranks) {
  std::error_code error;
  std::vector<std::pair<int, std::filesystem::path>> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (const auto rank = rank_of_folder(entry.path().filename().string())) old.emplace_back(*rank, entry.path());
  }
  if (error) throw UsageError(fmt::format("{}: cannot be read: {}", folder_.string(), error.message()));
  for (const auto& [rank, place] : old) {
    set_aside_run_in(place);
    if (rank >= ranks && std::filesystem::exists(place, error))
      throw UsageError(cannot_be(place, "removed", "it holds files that no run left"));
  }
}

std::filesystem::path rank_folder(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("{}{}", kRankFolder, rank);
}

std::optional<int> rank_of_folder(std::string_view name) {
  if (!name.starts_with(kRankFolder)) return std::nullopt;
  name.remove_prefix(kRankFolder.size());
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (error != std::errc() || fmt::format("{}", rank) != name) return std::nullopt;  // also refuses "rank-07"
  return rank;
}

Fd FolderLock::open_folder(const std::filesystem::path& folder) {
  return Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool FolderLock::is_held(const std::filesystem::path& folder) {
  const auto opened = open_folder(folder);
  return flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FolderLock::FolderLock(const std::filesystem::path& folder, Sharing sharing) {
  make_folder(folder);
  folder_ = open_folder(folder);
  if (flock(folder_.get(), (sharing == Sharing::parts ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UsageError(cannot_be(folder, "used", "another run that is under way leaves its files there"));
}

void remove_seed_folder(const std::filesystem::path& folder) noexcept {
  std::error_code ignored;
  // Leave a symbolic link alone: a user made it.
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored))) return;
  for (const auto& file : files_of_seed(folder)) std::filesystem::remove(file, ignored);
  remove_parts(folder);
  std::filesystem::remove(folder, ignored);
}

void prepare_folder(const std::filesystem::path& folder) {
  make_folder(folder);
  require_writable(folder);
}

void prepare_sweep_folder(const std::filesystem::path& folder, const SeedRange& seeds) {
  prepare_folder(folder);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto seed = seed_of_folder(entry.path().filename().string());
    if (seed && *seed >= seeds.first && *seed <= seeds.last) remove_seed_folder(entry.path());
  }
  if (error) throw UsageError(cannot_be(folder, "read", error.message()));
}

}  // namespace rehearse::cli
