// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/observer.h>

#include "exec/fiber/fiber.h"

// How a rank looks again and again at what may have changed. For the running fiber; both throw RankAborted when the
// world has ended.
namespace rehearse::exec {

// See this_rank::poll().
void poll(Fiber& fiber, const Observer* asked = nullptr);

// As poll(), for a look at the clock: the first 10,000 in a row are taken for measuring. Where time passes by itself
// there is nothing to wait for, and it only tells the next poll() that its caller may go by the clock.
void look_at_clock(Fiber& fiber);

// Until others have done something. For a call that would block in the kernel (read() of a pipe) until another rank
// makes one: it looks again and again, but as nothing else comes of a look, one that is in vain is a blocked rank's.
// `first`: of this call.
void wait_in_kernel(Fiber& fiber, const Observer& observer, bool first);

// What those who wait in the kernel look at may have changed.
void look_in_kernel(const Fiber& fiber) noexcept;

}  // namespace rehearse::exec
