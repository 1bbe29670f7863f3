// SPDX-License-Identifier: BSD-3-Clause
#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* why) {
  throw OutputError(fmt::format("{}: cannot be written: {}", file.string(), why));
}

// Can a new file take its name? What a link leads to keeps its place.
bool is_replaceable(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(file, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

}  // namespace

std::filesystem::path part_of(const std::filesystem::path& file) { return file.string() + ".part"; }

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  const bool replaces = is_replaceable(file);
  const auto place = replaces ? part_of(file) : file;
  errno = 0;
  std::ofstream out(place, std::ios::binary);
  if (out) write(out);
  out.close();
  std::error_code error;
  if (!out) {
    const int why = errno;
    if (replaces) std::filesystem::remove(place, error);
    fail(file, std::strerror(why));
  }
  if (replaces) std::filesystem::rename(place, file, error);
  if (error) fail(file, error.message().c_str());
}

}  // namespace rehearse::sim
