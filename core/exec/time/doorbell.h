// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ends machine_sleep() (machine_time.h) when another thread has an event for a rank. There is one doorbell per process:
// a woken thread checks whether the event was for it.
namespace rehearse::exec {

// Call it after the event has become visible. Any thread may call it, also in a signal handler.
void ring_doorbell() noexcept;

// Call it before you check for events: this thread's next sleep ends at once if the doorbell rings after this call.
void hear_doorbell() noexcept;

// Whether `word` is the futex of the doorbell. Our syscall() passes calls for this futex to the kernel, because no rank
// waits for it, and because our handling of a wake-up rings the doorbell: a ring would cause the next one, endlessly.
bool is_doorbell(const void* word) noexcept;

}  // namespace rehearse::exec
