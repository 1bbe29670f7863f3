// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <pthread.h>

#include <rehearse/exec/time.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec::interpose {

// pthread_mutex_lock() and so on for a fiber; the results are libc's. Suspends while another fiber of this world
// holds the mutex, and really blocks while another thread does.
int lock_mutex(Fiber& fiber, pthread_mutex_t* mutex, std::optional<VirtualTime> deadline = std::nullopt);
int unlock_mutex(Fiber& fiber, pthread_mutex_t* mutex);

// "rank 3", "rank 3 (thread 2)", or what else is known of a lock's owner.
std::string describe_owner(const Fiber& fiber, int owner);

}  // namespace rehearse::exec::interpose
