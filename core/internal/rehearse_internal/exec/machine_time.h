// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// The machine's monotonic clock, also where a rank's clocks tell its world's time. For the Clock of a mode that runs in
// real time, which those ask. Never a poll, never a switch.
VirtualDuration machine_time() noexcept;

// The same of its real-time clock: since 1970-01-01T00:00:00Z.
VirtualDuration machine_wall_time() noexcept;

// Blocks the thread for so long, or until another thread signals an object of libc's that a rank waits for. For a
// Clock's advance_to(), outside of ranks. May come back early for no reason.
void machine_sleep(VirtualDuration duration) noexcept;

}  // namespace rehearse::exec
