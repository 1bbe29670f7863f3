// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "exec/executor/switcher.h"
#include "exec/executor/world_parts.h"

namespace rehearse::exec::interpose {

// Whether the caller at this return address is the user's code. LibTorch's and Rehearse's own locks are not tested for
// races. A function without a name, as in a stripped executable, does not count as the user's.
bool is_users_call(void* return_address);

// Whether the user's code caused the call, perhaps through a library such as LibTorch: finds the innermost caller that
// is the user's or Rehearse's code.
bool is_for_the_user(void* return_address);

// A lock counts as a thing of its rank: its address may belong to another lock in the next run.
Access access_to_locks(const Fiber& fiber);

// Call it before the fiber takes a lock, and after it has released one. In worlds with ExecutorOptions::preempt, other
// fibers may run first if the user's code called the libc function. `return_address`: the return address of that
// function.
inline void preempt_users_call(Fiber& fiber, void* return_address) {
  if (fiber.world->options.preempt && is_users_call(return_address)) [[unlikely]]
    fiber.world->switcher.preempt(fiber, access_to_locks(fiber));
}

// The calling fiber, if any, is about to make a call on a file that other ranks may read or change. In worlds with
// ExecutorOptions::preempt, other fibers may run first; with file_time, the call takes a while. A call that the user's
// code makes through LibTorch or the C++ library counts as the user's; Rehearse's own reads and writes do not count.
// `return_address`: the return address of the interposed libc function. `path`: as given to that function.
void preempt_file_call(void* return_address, const char* path);
void preempt_file_call(void* return_address, int file);

// Whether `file` is a regular file other than a standard stream. False outside of ranks, and in worlds without
// ExecutorOptions::preempt and file_time.
bool may_be_shared(int file) noexcept;

}  // namespace rehearse::exec::interpose
