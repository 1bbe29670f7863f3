// SPDX-License-Identifier: BSD-3-Clause
#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace rehearse::sim {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* why) {
  throw OutputError(fmt::format("{}: cannot be written: {}", file.string(), why));
}

// True if a new file may replace this name. Links and special files are written in place.
bool is_replaceable(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(file, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

constexpr std::string_view kPart = ".part";

// The part lies in the same folder, so that the rename stays within a file system. Its name contains the process id, so
// that two processes that write the same file do not mix.
std::filesystem::path new_part_of(const std::filesystem::path& file) {
  return fmt::format("{}.{}{}", file.string(), ::getpid(), kPart);
}

}  // namespace

bool is_part_of(const std::filesystem::path& part, const std::filesystem::path& file) {
  return part.extension() == kPart && part.filename().string().starts_with(file.filename().string() + ".");
}

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  const bool replaces = is_replaceable(file);
  const auto target = replaces ? new_part_of(file) : file;
  errno = 0;
  std::ofstream out(target, std::ios::binary);
  std::error_code error;
  try {
    if (out) write(out);
  } catch (...) {
    out.close();
    if (replaces) std::filesystem::remove(target, error);
    throw;
  }
  out.close();
  if (!out) {
    const int why = errno;
    if (replaces) std::filesystem::remove(target, error);
    fail(file, std::strerror(why));
  }
  if (!replaces) return;
  std::filesystem::rename(target, file, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(target, ignored);
  fail(file, error.message().c_str());
}

}  // namespace rehearse::sim
