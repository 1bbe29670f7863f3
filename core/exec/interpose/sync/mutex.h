// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <pthread.h>

#include <rehearse/exec/time.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec::interpose {

// pthread_mutex_lock() and its siblings for a fiber, with libc's results. While another thread holds the mutex, blocks
// the thread, but not longer than the world's time until `deadline` would take in real time. Otherwise, if the mutex is
// not free, suspends the fiber.
int lock_mutex(Fiber& fiber, pthread_mutex_t* mutex, std::optional<VirtualTime> deadline = std::nullopt);
int unlock_mutex(Fiber& fiber, pthread_mutex_t* mutex);

// "rank 3", "rank 3 (thread 2)", or whatever else is known about a lock's owner.
std::string describe_owner(const Fiber& fiber, int owner);

}  // namespace rehearse::exec::interpose
