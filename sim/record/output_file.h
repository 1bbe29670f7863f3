// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <stdexcept>

namespace rehearse::sim {

// A file, or stdout, cannot be written: a full disk. what() names it and the reason.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `write` gets the opened file. It has its name once it is whole: who dies in the middle leaves what was there before,
// and beside it a part of the new one (is_part_of()), which no other process writes. What is no ordinary file, a pipe
// or /dev/stdout, is written in place. Throws OutputError.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

// Is `part` what some process has left of `file`?
bool is_part_of(const std::filesystem::path& part, const std::filesystem::path& file);

}  // namespace rehearse::sim
