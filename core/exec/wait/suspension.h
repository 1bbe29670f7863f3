// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>

#include <rehearse/exec/observer.h>

#include "exec/fiber/fiber.h"

// Functions with which the running fiber gives up the thread, and handles the end of its world when it resumes.
// `observer`: the call that the fiber is in.
namespace rehearse::exec {

// Suspends until Switcher::make_runnable(). Throws RankAborted if the world or the rank has ended before the call, or
// if its end wakes the fiber. A fiber that is unwinding cannot take a second exception; it is left behind instead, and
// the call never returns. So is a fiber in which RankAborted has been thrown a thousand times.
void suspend_blocked(Fiber& fiber, const Observer& observer);

// Like suspend_blocked(), but returns false instead of throwing; then the caller must call abort_wait().
bool suspend_or_end(Fiber& fiber, const Observer& observer);
[[noreturn]] void abort_wait(Fiber& fiber, const Observer& observer);

// Throws `error` out of a function of libc. In a process with an interpreter, whose C code cannot unwind, the running
// fiber's rank fails here instead.
[[noreturn]] void throw_from_c(Fiber& fiber, const std::exception_ptr& error);

// Lets other fibers run. Throws as suspend_blocked() does, also if the world or the rank has ended during the call.
void yield(Fiber& fiber);

// See WaitQueue::linger().
bool linger(Fiber& fiber, const Observer& observer);

}  // namespace rehearse::exec
