// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// The innermost frame of user code; an empty frame if there is none.
inline Frame user_frame(const CallSite& site) {
  const auto frames = site.user_frames();
  return frames.empty() ? Frame{} : frames.front();
}

}  // namespace rehearse::exec
