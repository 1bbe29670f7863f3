// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// A thread that a rank started while it initialised a static variable, or under std::call_once. Ranks share the
// variable, and the variable outlives the thread, which ends with the rank's world.
struct StaticThread {
  int rank = -1;
  CallSite where;
};

// All such threads since the process began, in order. Equal entries occur once. Includes earlier worlds, because a
// variable is initialised once per process. Call it on the thread that runs worlds.
const std::vector<StaticThread>& static_threads() noexcept;

}  // namespace rehearse::exec
