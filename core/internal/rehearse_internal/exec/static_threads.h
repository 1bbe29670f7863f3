// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// A thread that a rank started while it initialised a static variable, or under std::call_once. Ranks share the
// variable, but the thread ends with the rank's world, while the variable lives on.
struct StaticThread {
  int rank = -1;
  CallSite where;
};

// All such threads since the process began, in order. Equal entries occur once. Includes earlier worlds, because a
// variable is initialised once per process. Call it on the thread that runs worlds.
const std::vector<StaticThread>& static_threads() noexcept;

}  // namespace rehearse::exec
