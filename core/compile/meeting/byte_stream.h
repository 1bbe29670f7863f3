// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

// Throws CompileError where the bytes are too few, or, at finish(), too many.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number();
  // A count of things that take at least a byte each.
  std::size_t count();
  std::string text();
  void finish() const;

 private:
  std::string_view take(std::size_t bytes);

  std::string_view rest_;
};

}  // namespace rehearse::compiler
