// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "exec/executor/switcher.h"
#include "exec/executor/world_parts.h"

namespace rehearse::exec::interpose {

// The caller, by its return address, is code of the user's: neither LibTorch's, whose locks are not what is tried out,
// nor Rehearse's own. An unknown function of the user's executable counts as the user's.
bool is_users_call(void* return_address);

// The fiber is about to lock, or has unlocked: where worlds try that, others may run first. `return_address` is that
// of the libc function that is interposed.
inline void preempt_users_call(Fiber& fiber, void* return_address) {
  if (fiber.world->options.preempt && is_users_call(return_address)) [[unlikely]]
    fiber.world->switcher.preempt(fiber);
}

// The calling fiber, if there is one, is about to make a call for a file that other ranks may see, or may have changed:
// where worlds try that, others may run first. LibTorch and the C++ library call for the program; what Rehearse itself
// reads and writes is nobody's race. `return_address`: as above.
void preempt_file_call(void* return_address);

// Is it a regular file, other than the standard streams? False where no world tries such switches.
bool may_be_shared(int file) noexcept;

}  // namespace rehearse::exec::interpose
