// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

class RankExecutor;

// The difference between the clocks of a rank and those of the world. `realtime` applies to system_clock; `monotonic`
// to steady_clock, which never goes back on a real machine.
struct ClockJump {
  VirtualDuration realtime{};
  VirtualDuration monotonic{};
};

// Adds `by` to the clocks that `rank` reads from now on. The world's own time does not change, so timers, time limits
// and pending waits are unaffected. Call it anywhere on the executor's thread during a run. Neither blocks nor throws.
void jump_clocks(RankExecutor& executor, int rank, const ClockJump& by);

}  // namespace rehearse::exec
