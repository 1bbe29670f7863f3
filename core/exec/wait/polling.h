// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/observer.h>

#include "exec/fiber/fiber.h"

// Functions with which the running fiber polls for changes. A wait throws RankAborted if the world or the rank has
// ended.
namespace rehearse::exec {

// See this_rank::poll().
void poll(Fiber& fiber, const Observer* asked = nullptr, Access access = {});

// See this_rank::look().
void look(Fiber& fiber, Access access);

// Like poll(), for a clock read: the first 10,000 in a row count as measuring. In real time, poll_clock() does not
// wait: it only tells the next poll() that the rank may depend on the clock.
void poll_clock(Fiber& fiber);

// Suspends until other ranks have done something. Use it for a call that would block in the kernel until another rank
// makes a call: read() of a pipe, for example. The caller tries repeatedly, and waits here between two tries. Unlike a
// polling rank, a rank that waits here counts as blocked. `first`: the first wait of this call.
void wait_in_kernel(Fiber& fiber, const Observer& observer, bool first);

// Call it after a change for which fibers may wait in wait_in_kernel(): they try again.
void poll_in_kernel(const Fiber& fiber) noexcept;

}  // namespace rehearse::exec
