// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>

namespace rehearse::bench {

// This thread's CPU time in seconds. Unlike wall time, it does not grow with other load on a shared machine.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace rehearse::bench
