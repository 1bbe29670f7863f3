// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rehearse::sim {

// A file that a user named cannot be read; what() is `<file>: <what is wrong>`.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns how many bytes a file with this beginning may have. Returns 0 for another kind of file; then the reader needs
// no more than the beginning.
using BytesMost = std::function<std::size_t(std::string_view beginning)>;

// Reads a file that a user named, which may be anything. Refuses a pipe to which nobody writes, and a file that is
// larger than `bytes_most` allows, which it does not read to the end. `what` is the expected kind, for the error
// ("scenario"). If `bytes_most` returns 0, returns only the beginning of the file. Throws InputError.
std::string read_input(const std::filesystem::path& file, std::string_view what, const BytesMost& bytes_most);

}  // namespace rehearse::sim
