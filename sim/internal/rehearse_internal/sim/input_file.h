// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rehearse::sim {

// A file that somebody named cannot be read; what() is `<file>: <what is wrong>`.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How large a file that begins so may be, in bytes; 0: it is something else, of which no more need be read.
using BytesMost = std::function<std::size_t(std::string_view beginning)>;

// A file that somebody named, which may be anything: never takes more memory than it may, and does not wait
// for a pipe that nobody writes to. `what` is what it should be ("scenario"). Of something else only the
// beginning comes back. Throws InputError.
std::string read_input(const std::filesystem::path& file, std::string_view what, const BytesMost& bytes_most);

}  // namespace rehearse::sim
