// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace rehearse::real {

struct CheckOptions {
  bool calls = true;  // false: calls are recorded and ends of ranks are reported, but nobody compares calls
  // The check timeout: for how long a rank waits for ranks that do not make its call, and for how long a process may
  // send nothing.
  std::chrono::milliseconds check_timeout = std::chrono::seconds(10);
};

// Reads the environment: REHEARSE_CHECKS (0 or 1) and REHEARSE_CHECK_TIMEOUT (seconds, from 0.5 to 86400). Throws
// RunnerUnavailable, naming the variable, for other values. All processes of a job must have the same values.
CheckOptions check_options();

}  // namespace rehearse::real
