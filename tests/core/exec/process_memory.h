// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>

#include <malloc.h>
#include <unistd.h>

// AddressSanitizer has this function, but GCC ships no header that declares it.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace rehearse::exec::test {

// Under AddressSanitizer, malloc gives no statistics to mallinfo2() and holds back freed memory, so resident memory
// grows.
inline const bool kFreedMemoryIsReused = __sanitizer_get_current_allocated_bytes == nullptr;

inline std::size_t allocated_bytes() {
  if (!kFreedMemoryIsReused) return __sanitizer_get_current_allocated_bytes();
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;  // hblkhd: large blocks that malloc maps separately
}

inline std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// The number of mappings in the process's address space. A fiber's stack has two.
inline std::size_t memory_maps() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace rehearse::exec::test
