// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

// What the fuzz targets share. A target passes an input to a reader, and does with the result what users do with it. It
// catches the exceptions that the reader's header documents. libFuzzer reports all other exceptions.
namespace rehearse::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Returns the path of a file in memory with these bytes; the next call overwrites it. The path ends in the number 0, as
// the name of rank 0's dump does, because the file takes the place of the standard input.
inline std::string file_of(std::string_view bytes) {
  static const bool opened = ::dup2(::memfd_create("input", 0), STDIN_FILENO) == STDIN_FILENO;
  require(opened && ::ftruncate(STDIN_FILENO, 0) == 0 &&
              ::pwrite(STDIN_FILENO, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "the input fits into memory");
  return "/proc/self/fd/0";
}

}  // namespace rehearse::fuzz
