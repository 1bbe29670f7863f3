// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <stdexcept>

namespace rehearse::sim {

// A file, or stdout, cannot be written. what() names it and the reason.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes a file; `write` gets the open stream. The file gets its name only when it is complete. If the process dies
// before, the old file remains, and beside it a part of the new one (is_part_of()), which no other process writes to.
// Anything but an ordinary file, such as a pipe or /dev/stdout, is written in place. Throws OutputError, and what
// `write` throws; then no part remains.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

// True if `part` has the name of an unfinished part of `file`.
bool is_part_of(const std::filesystem::path& part, const std::filesystem::path& file);

}  // namespace rehearse::sim
