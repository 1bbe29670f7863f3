// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// The rank that the calling thread works for: the thread runs a fiber of the rank, or it is a thread of the rank's
// OpenMP region. Async-signal-safe.
struct RankOfThread {
  int rank = -1;     // -1: none
  VirtualTime at{};  // the time of the rank's world
};
RankOfThread rank_of_thread() noexcept;

}  // namespace rehearse::exec
