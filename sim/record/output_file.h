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

// `write` gets the opened file. Throws OutputError.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

}  // namespace rehearse::sim
