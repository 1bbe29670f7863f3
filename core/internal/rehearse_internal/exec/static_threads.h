// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// A thread that a rank started while it initialised a static variable (or under std::call_once). Ranks share the
// variable, and the thread ends with the rank's world, while the variable lives on.
struct StaticThread {
  int rank = -1;
  CallSite where;
};

// All since the process began, in order: a variable is initialised once, whatever the number of worlds. On the thread
// that runs worlds.
const std::vector<StaticThread>& static_threads() noexcept;

}  // namespace rehearse::exec
