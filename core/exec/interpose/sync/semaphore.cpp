// SPDX-License-Identifier: BSD-3-Clause
// POSIX semaphores: libc's object keeps the count, and fibers wait for it in our table.
#include <array>
#include <cerrno>

#include <semaphore.h>

#include <rehearse_internal/exec/interpreter.h>

#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"

namespace rehearse::exec::interpose {

int semaphore_wait(sem_t* semaphore) REHEARSE_INTERPOSES("sem_wait");
int semaphore_trywait(sem_t* semaphore) REHEARSE_INTERPOSES("sem_trywait");
int semaphore_timedwait(sem_t* semaphore, const timespec* until) REHEARSE_INTERPOSES("sem_timedwait");
int semaphore_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) REHEARSE_INTERPOSES("sem_clockwait");
int semaphore_post(sem_t* semaphore) REHEARSE_INTERPOSES("sem_post");

namespace {

constinit Real<int (*)(sem_t*)> real_sem_wait("sem_wait");
constinit Real<int (*)(sem_t*)> real_sem_trywait("sem_trywait");
constinit Real<int (*)(sem_t*, const timespec*)> real_sem_timedwait("sem_timedwait");
constinit Real<int (*)(sem_t*, clockid_t, const timespec*)> real_sem_clockwait("sem_clockwait");
constinit Real<int (*)(sem_t*)> real_sem_post("sem_post");

int fail_with(int error) {
  errno = error;
  return -1;
}

int wait_in_fiber(Fiber& fiber, sem_t* semaphore, std::optional<VirtualTime> deadline) {
  WaitTable& waiters = world_of(fiber).semaphores;
  const OutsideWait outside(fiber, waiters, semaphore);
  const OpaqueObserver observer("a semaphore");
  for (;;) {
    if (real_sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    const auto result = waiters.wait_or_end(semaphore, observer, deadline);
    if (!result) {
      if (!fiber.world->outcome.ended()) waiters.notify_one(semaphore);
      abort_wait(fiber, observer);
    }
    if (*result == WaitResult::timed_out) return fail_with(ETIMEDOUT);
  }
}

int timed_wait(Fiber& fiber, sem_t* semaphore, clockid_t clock, const timespec& until) {
  if (real_sem_trywait(semaphore) == 0) return 0;
  const auto at_zero = clock_at_zero(fiber, clock);
  if (!at_zero || !valid(until)) return fail_with(EINVAL);
  return wait_in_fiber(fiber, semaphore, to_deadline(until, *at_zero));
}

// CPython reads the clock and tries a lock's semaphore each time before it waits for it. Neither is polling.
void take_back_clock_read(Fiber& fiber) noexcept {
  if (interpreter() != nullptr && fiber.clock_reads > 0) --fiber.clock_reads;
}

bool is_first_try(Fiber& fiber) noexcept {
  constexpr std::uint16_t kTries = 1'000;
  return interpreter() != nullptr && ++fiber.tries_in_vain % kTries != 0;
}

}  // namespace

int semaphore_wait(sem_t* semaphore) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_sem_wait(semaphore);
  take_back_clock_read(*fiber);
  return wait_in_fiber(*fiber, semaphore, std::nullopt);
}

int semaphore_trywait(sem_t* semaphore) {
  Fiber* const fiber = current_fiber();
  if (fiber != nullptr) take_back_clock_read(*fiber);
  const int result = real_sem_trywait(semaphore);
  if (result == 0 || fiber == nullptr || errno != EAGAIN) return result;
  if (!is_first_try(*fiber)) poll_in_vain(*fiber);
  return fail_with(EAGAIN);
}

int semaphore_timedwait(sem_t* semaphore, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_sem_timedwait(semaphore, until);
  return timed_wait(*fiber, semaphore, CLOCK_REALTIME, *until);
}

int semaphore_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_sem_clockwait(semaphore, clock, until);
  return timed_wait(*fiber, semaphore, clock, *until);
}

int semaphore_post(sem_t* semaphore) {
  // Also wakes a waiting thread; the fiber or thread that tries first gets the count.
  const int result = real_sem_post(semaphore);
  if (WorldState* const world = world_of_host(); result == 0 && world != nullptr) {
    world->semaphores.notify_one(semaphore);
  }
  if (result == 0) signal_outside(semaphore);
  return result;
}

std::span<const Interposed> semaphore_functions() {
  static const std::array functions = {
      Interposed{"sem_wait", reinterpret_cast<const void*>(semaphore_wait)},
      Interposed{"sem_trywait", reinterpret_cast<const void*>(semaphore_trywait)},
      Interposed{"sem_timedwait", reinterpret_cast<const void*>(semaphore_timedwait)},
      Interposed{"sem_clockwait", reinterpret_cast<const void*>(semaphore_clockwait)},
      Interposed{"sem_post", reinterpret_cast<const void*>(semaphore_post)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
