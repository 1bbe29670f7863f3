// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace rehearse::real {

// How calls of different processes are compared before they are carried out.
struct CheckOptions {
  bool calls = true;  // false: they are recorded, and ends of ranks are told, but nobody compares
  // For so long a rank waits for those that do not come to its call, and of a process nothing may be heard.
  std::chrono::milliseconds check_timeout = std::chrono::seconds(10);
};

// From the environment: REHEARSE_CHECKS (0 or 1) and REHEARSE_CHECK_TIMEOUT (seconds, from 0.5 to 86400). Throws
// RunnerUnavailable, naming the variable, for other values. All processes of a job are to have the same.
CheckOptions check_options();

}  // namespace rehearse::real
