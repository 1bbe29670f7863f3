// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rehearse::compiler {

// The format of what ranks send each other at compile time: numbers as eight bytes, low byte first; texts as their
// length and their bytes.
class ByteWriter {
 public:
  void number(std::uint64_t value);
  void text(std::string_view value);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws CompileError: `sender` sent something unreadable, because of `why`.
[[noreturn]] void damaged(std::string_view why, const std::string& sender);

// Reads what a ByteWriter wrote. Throws CompileError that names the sender if bytes are missing, or, in finish(), if
// bytes are left.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, std::string sender = "another rank")
      : rest_(bytes), sender_(std::move(sender)) {}

  std::uint64_t number();
  // Reads a number of at most `most`. `what`: names the number in the error.
  std::uint64_t number_up_to(std::uint64_t most, const char* what);
  // Reads the number of the items that follow, each of at least `bytes_of_each` bytes. Throws if the remaining bytes
  // cannot hold so many.
  std::size_t count(std::size_t bytes_of_each);
  std::string text();
  void finish() const;

 private:
  std::string_view take(std::size_t bytes);

  std::string_view rest_;
  const std::string sender_;
};

}  // namespace rehearse::compiler
