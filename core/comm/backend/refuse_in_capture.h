// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::comm {

// Refuses a call that reaches a back end directly while the caller's code is captured. A capture records only what goes
// through LibTorch's dispatcher, as the calls of a c10d::ProcessGroup do.
inline void refuse_in_capture(const char* what) {
  operators::refuse_in_capture(what, "Use the calls of c10d::ProcessGroup, or put it into a rehearse::eager_region().");
}

}  // namespace rehearse::comm
