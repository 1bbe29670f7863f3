// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include <malloc.h>
#include <sys/prctl.h>

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

// The memory that no file backs, in RAM or swapped out: heap and stacks. The pages of libraries are not counted,
// because the machine may evict them and load them again at any time. /proc/self/smaps_rollup is exact; the counters of
// statm lag behind. From the first call on, the kernel makes no huge pages of this process's pages, because it does
// that at any time, and counts the untouched part of a huge page, too.
inline std::size_t resident_bytes() {
  [[maybe_unused]] static const int no_huge_pages = ::prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::size_t bytes = 0;
  for (std::string name; rollup >> name;) {
    std::size_t kibibytes = 0;
    if ((name == "Anonymous:" || name == "Swap:") && rollup >> kibibytes) bytes += kibibytes * 1024;
  }
  return bytes;
}

// The number of mappings in the process's address space. A fiber's stack has two.
inline std::size_t memory_maps() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace rehearse::exec::test
