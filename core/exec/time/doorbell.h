// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ends machine_sleep() (machine_time.h) when something has come from another thread. One for the process: who is woken
// looks whether it was for it.
namespace rehearse::exec {

// After what has come can be seen. From any thread, also in a signal handler.
void ring_doorbell() noexcept;

// Before one looks for what has come: this thread's next sleep ends at once if it rings after that.
void hear_doorbell() noexcept;

// Is this the futex that sleepers wait for? Our syscall() leaves it to the kernel: no rank waits for it, and a signal
// for it would ring again, without end.
bool is_doorbell(const void* word) noexcept;

}  // namespace rehearse::exec
