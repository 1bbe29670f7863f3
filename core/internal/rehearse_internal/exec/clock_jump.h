// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

class RankExecutor;

// By how much the clocks of a rank differ from the world's. `realtime`: what system_clock reads; `monotonic`: what
// steady_clock does, which on a machine never goes back.
struct ClockJump {
  VirtualDuration realtime{};
  VirtualDuration monotonic{};
};

// From now on `rank` reads so much more than it did. The world's own time stays as it is: timers, time limits, and
// waits that have begun. Anywhere on the executor's thread, during a run; nothing blocks or throws.
void jump_clocks(RankExecutor& executor, int rank, const ClockJump& by);

}  // namespace rehearse::exec
