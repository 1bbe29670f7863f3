// SPDX-License-Identifier: BSD-3-Clause
// Reader-writer locks: libc's object keeps the state; a fiber waits in our table while another fiber of its world holds
// the lock.
#include <array>
#include <cerrno>

#include <pthread.h>

#include <fmt/format.h>

#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"
#include "preempt.h"

namespace rehearse::exec::interpose {

using Rwlock = pthread_rwlock_t;

int rwlock_rdlock(Rwlock* lock) REHEARSE_INTERPOSES("pthread_rwlock_rdlock");
int rwlock_tryrdlock(Rwlock* lock) REHEARSE_INTERPOSES("pthread_rwlock_tryrdlock");
int rwlock_timedrdlock(Rwlock* lock, const timespec* until) REHEARSE_INTERPOSES("pthread_rwlock_timedrdlock");
int rwlock_clockrdlock(Rwlock* lock, clockid_t clock, const timespec* until)
    REHEARSE_INTERPOSES("pthread_rwlock_clockrdlock");
int rwlock_wrlock(Rwlock* lock) REHEARSE_INTERPOSES("pthread_rwlock_wrlock");
int rwlock_trywrlock(Rwlock* lock) REHEARSE_INTERPOSES("pthread_rwlock_trywrlock");
int rwlock_timedwrlock(Rwlock* lock, const timespec* until) REHEARSE_INTERPOSES("pthread_rwlock_timedwrlock");
int rwlock_clockwrlock(Rwlock* lock, clockid_t clock, const timespec* until)
    REHEARSE_INTERPOSES("pthread_rwlock_clockwrlock");
int rwlock_unlock(Rwlock* lock) REHEARSE_INTERPOSES("pthread_rwlock_unlock");

namespace {

// The libc functions that lock for reading, or those that lock for writing.
struct Mode {
  Real<int (*)(Rwlock*)> lock;
  Real<int (*)(Rwlock*)> try_lock;
  Real<int (*)(Rwlock*, const timespec*)> timed_lock;
  Real<int (*)(Rwlock*, clockid_t, const timespec*)> clock_lock;
  bool writes;
};

constinit Mode g_read{Real<int (*)(Rwlock*)>("pthread_rwlock_rdlock"),
                      Real<int (*)(Rwlock*)>("pthread_rwlock_tryrdlock"),
                      Real<int (*)(Rwlock*, const timespec*)>("pthread_rwlock_timedrdlock"),
                      Real<int (*)(Rwlock*, clockid_t, const timespec*)>("pthread_rwlock_clockrdlock"), false};
constinit Mode g_write{Real<int (*)(Rwlock*)>("pthread_rwlock_wrlock"),
                       Real<int (*)(Rwlock*)>("pthread_rwlock_trywrlock"),
                       Real<int (*)(Rwlock*, const timespec*)>("pthread_rwlock_timedwrlock"),
                       Real<int (*)(Rwlock*, clockid_t, const timespec*)>("pthread_rwlock_clockwrlock"), true};
constinit Real<int (*)(Rwlock*)> real_rw_unlock("pthread_rwlock_unlock");

class RwlockObserver final : public Observer {
 public:
  RwlockObserver(const RwlockHolds& holds, const Rwlock* lock) : holds_(holds), lock_(lock) {}

 private:
  Wait describe() const override {
    const auto* const hold = holds_.find(lock_);
    Wait wait{.waits_on = "a reader-writer lock", .kind = Wait::Kind::lock, .object = "reader-writer lock"};
    if (hold == nullptr) return wait;
    if (hold->writer == nullptr) {
      wait.waits_on += fmt::format(" held by {} reader{}", hold->readers, hold->readers == 1 ? "" : "s");
      return wait;
    }
    wait.waits_on += fmt::format(" held by rank {}", hold->writer->rank);
    wait.waits_for = {hold->writer->rank};
    return wait;
  }

  const RwlockHolds& holds_;
  const Rwlock* lock_;
};

int noted(Fiber& fiber, Rwlock* lock, const Mode& mode, int result) {
  if (result != 0) return result;
  auto& holds = world_of(fiber).rwlock_holds;
  if (mode.writes) {
    holds.add_writer(lock, fiber);
  } else {
    holds.add_reader(lock);
  }
  return 0;
}

// Another thread holds the lock.
int lock_for_real(const Fiber& fiber, Rwlock* lock, Mode& mode, std::optional<VirtualTime> deadline) {
  if (!deadline) return mode.lock(lock);
  const timespec until = machine_deadline(fiber, *deadline);
  return mode.timed_lock(lock, &until);
}

int lock_in_fiber(Fiber& fiber, Rwlock* lock, Mode& mode, std::optional<VirtualTime> deadline = std::nullopt) {
  WorldState& world = world_of(fiber);
  for (;;) {
    const int result = mode.try_lock(lock);
    if (result != EBUSY) return noted(fiber, lock, mode, result);
    const auto* const hold = world.rwlock_holds.find(lock);
    if (hold == nullptr) {
      const int locked = lock_for_real(fiber, lock, mode, deadline);
      if (locked != ETIMEDOUT) return noted(fiber, lock, mode, locked);
    } else if (hold->writer == &fiber) {
      return EDEADLK;
    }
    const RwlockObserver observer(world.rwlock_holds, lock);
    if (fiber.world->outcome.ended_for(fiber)) {
      if (!world.locks.linger(lock, observer)) abort_wait(fiber, observer);
    } else if (world.locks.wait_or_end(lock, observer, deadline) == WaitResult::timed_out) {
      return ETIMEDOUT;
    }
  }
}

int timed_lock_in_fiber(Fiber& fiber, Rwlock* lock, Mode& mode, clockid_t clock, const timespec& until) {
  const auto at_zero = clock_at_zero(fiber, clock);
  if (!at_zero || !valid(until)) return EINVAL;
  return lock_in_fiber(fiber, lock, mode, to_deadline(until, *at_zero));
}

int lock_here(Rwlock* lock, Mode& mode, void* caller) {
  Fiber* const fiber = current_fiber();
  if (fiber != nullptr) preempt_users_call(*fiber, caller);
  return fiber == nullptr ? mode.lock(lock) : lock_in_fiber(*fiber, lock, mode);
}

int try_lock_here(Rwlock* lock, Mode& mode) {
  Fiber* const fiber = current_fiber();
  const int result = mode.try_lock(lock);
  if (fiber == nullptr) return result;
  if (result == EBUSY) poll_in_vain(*fiber);
  return noted(*fiber, lock, mode, result);
}

int timed_lock_here(Rwlock* lock, Mode& mode, const timespec* until) {
  Fiber* const fiber = current_fiber();
  return fiber == nullptr ? mode.timed_lock(lock, until)
                          : timed_lock_in_fiber(*fiber, lock, mode, CLOCK_REALTIME, *until);
}

int clock_lock_here(Rwlock* lock, Mode& mode, clockid_t clock, const timespec* until) {
  Fiber* const fiber = current_fiber();
  return fiber == nullptr ? mode.clock_lock(lock, clock, until)
                          : timed_lock_in_fiber(*fiber, lock, mode, clock, *until);
}

}  // namespace

int rwlock_rdlock(Rwlock* lock) { return lock_here(lock, g_read, __builtin_return_address(0)); }
int rwlock_tryrdlock(Rwlock* lock) { return try_lock_here(lock, g_read); }
int rwlock_timedrdlock(Rwlock* lock, const timespec* until) { return timed_lock_here(lock, g_read, until); }
int rwlock_clockrdlock(Rwlock* lock, clockid_t clock, const timespec* until) {
  return clock_lock_here(lock, g_read, clock, until);
}
int rwlock_wrlock(Rwlock* lock) { return lock_here(lock, g_write, __builtin_return_address(0)); }
int rwlock_trywrlock(Rwlock* lock) { return try_lock_here(lock, g_write); }
int rwlock_timedwrlock(Rwlock* lock, const timespec* until) { return timed_lock_here(lock, g_write, until); }
int rwlock_clockwrlock(Rwlock* lock, clockid_t clock, const timespec* until) {
  return clock_lock_here(lock, g_write, clock, until);
}

int rwlock_unlock(Rwlock* lock) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_rw_unlock(lock);
  WorldState& world = world_of(*fiber);
  world.rwlock_holds.remove(lock);
  const int result = real_rw_unlock(lock);
  if (!world.locks.empty()) world.locks.notify_all(lock);
  preempt_users_call(*fiber, __builtin_return_address(0));
  return result;
}

std::span<const Interposed> rwlock_functions() {
  static const std::array functions = {
      Interposed{"pthread_rwlock_rdlock", reinterpret_cast<const void*>(rwlock_rdlock)},
      Interposed{"pthread_rwlock_tryrdlock", reinterpret_cast<const void*>(rwlock_tryrdlock)},
      Interposed{"pthread_rwlock_timedrdlock", reinterpret_cast<const void*>(rwlock_timedrdlock)},
      Interposed{"pthread_rwlock_clockrdlock", reinterpret_cast<const void*>(rwlock_clockrdlock)},
      Interposed{"pthread_rwlock_wrlock", reinterpret_cast<const void*>(rwlock_wrlock)},
      Interposed{"pthread_rwlock_trywrlock", reinterpret_cast<const void*>(rwlock_trywrlock)},
      Interposed{"pthread_rwlock_timedwrlock", reinterpret_cast<const void*>(rwlock_timedwrlock)},
      Interposed{"pthread_rwlock_clockwrlock", reinterpret_cast<const void*>(rwlock_clockwrlock)},
      Interposed{"pthread_rwlock_unlock", reinterpret_cast<const void*>(rwlock_unlock)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
