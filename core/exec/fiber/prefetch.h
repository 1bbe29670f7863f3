// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

inline constexpr std::size_t kCacheLine = 64;

// Fetches a cache line that will be written. Never faults, whatever the address. The compiler's own makes a fetch for
// reading of it, unless it may count on a processor with the other: the write then waits for the line a second time,
// and the next atomic instruction waits for the write. Processors without it take it as nothing.
inline void prefetch_to_write(const void* at) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

}  // namespace rehearse::exec
