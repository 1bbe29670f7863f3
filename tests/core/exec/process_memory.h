// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include <malloc.h>

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

// The resident memory that no file backs: heap and stacks. The pages of libraries are not counted, because the machine
// may evict them and load them again at any time. /proc/self/smaps_rollup is exact; the counters of statm lag behind.
inline std::size_t resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string name; rollup >> name;) {
    std::size_t kibibytes = 0;
    if (name == "Anonymous:" && rollup >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// The number of mappings in the process's address space. A fiber's stack has two.
inline std::size_t memory_maps() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace rehearse::exec::test
