// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rehearse::compiler {

// What ranks send each other at compile time: numbers as eight bytes, the low one first, texts by their length.
class ByteWriter {
 public:
  void number(std::uint64_t value);
  void text(std::string_view value);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws CompileError: `sender` sent something that cannot be read, and why.
[[noreturn]] void damaged(std::string_view why, const std::string& sender);

// Throws CompileError with the sender where the bytes are too few, or, at finish(), too many.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, std::string sender = "another rank")
      : rest_(bytes), sender_(std::move(sender)) {}

  std::uint64_t number();
  // A number up to `most`; `what` it is, for the error.
  std::uint64_t number_up_to(std::uint64_t most, const char* what);
  // A count of things that take at least so many bytes each: not more than are left.
  std::size_t count(std::size_t bytes_of_each);
  std::string text();
  void finish() const;

 private:
  std::string_view take(std::size_t bytes);

  std::string_view rest_;
  const std::string sender_;
};

}  // namespace rehearse::compiler
