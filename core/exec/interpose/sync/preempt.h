// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "exec/executor/executor_impl.h"

namespace rehearse::exec::interpose {

// The caller, by its return address, is code of the user's: neither LibTorch's, whose locks are not what is tried out,
// nor Rehearse's own. An unknown function of the user's executable counts as the user's.
bool is_users_call(void* return_address);

// The fiber is about to lock, or has unlocked: where worlds try that, others may run first. `return_address` is that
// of the libc function that is interposed.
inline void preempt_users_call(Fiber& fiber, void* return_address) {
  if (fiber.executor->options.preempt && is_users_call(return_address)) [[unlikely]]
    fiber.executor->preempt(fiber);
}

}  // namespace rehearse::exec::interpose
