// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

inline constexpr std::size_t kCacheLine = 64;

// Prefetches a cache line for writing. Never faults, whatever the address. The compiler's built-in function prefetches
// for reading unless the compiler may assume a processor with prefetchw. After a prefetch for reading, the write waits
// for the line a second time, and the next atomic instruction waits for the write. Processors without the instruction
// ignore it.
inline void prefetch_to_write(const void* at) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

}  // namespace rehearse::exec
