// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// Reads the machine's monotonic clock, even in a rank whose own clocks show the world's time. Never counts as a poll,
// and never switches.
VirtualDuration machine_time() noexcept;

// Reads the machine's real-time clock in the same way. Returns the time since 1970-01-01T00:00:00Z.
VirtualDuration machine_wall_time() noexcept;

// Blocks the thread for `duration`, or until another thread signals a libc object that a rank waits for. For a Clock's
// advance_to(), outside of ranks. May return early.
void machine_sleep(VirtualDuration duration) noexcept;

}  // namespace rehearse::exec
