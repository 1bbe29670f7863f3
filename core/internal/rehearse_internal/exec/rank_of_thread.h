// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// The rank that the calling thread works for, as its fiber or as a thread of its OpenMP region. Async-signal-safe.
struct RankOfThread {
  int rank = -1;  // -1: none
  VirtualTime at{};
};
RankOfThread rank_of_thread() noexcept;

}  // namespace rehearse::exec
