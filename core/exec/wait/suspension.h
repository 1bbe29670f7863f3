// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/observer.h>

#include "exec/fiber/fiber.h"

// How a fiber gives up the thread, and what it finds when it comes back after its world has ended. All of it is for the
// running fiber. `observer`: the call that it is in.
namespace rehearse::exec {

// Suspends until Switcher::make_runnable(). Throws RankAborted when the world has ended; a fiber that is
// unwinding cannot take a second exception and is left behind instead (the call then never returns).
void suspend_blocked(Fiber& fiber, const Observer& observer);

// As suspend_blocked(), but returns false where that throws; the caller then owes a meet_the_end().
bool suspend_or_end(Fiber& fiber, const Observer& observer);
[[noreturn]] void meet_the_end(Fiber& fiber, const Observer& observer);

// Lets others run. Throws as suspend_blocked() does.
void yield(Fiber& fiber);

// See WaitQueue::linger().
bool linger(Fiber& fiber, const Observer& observer);

}  // namespace rehearse::exec
