// SPDX-License-Identifier: BSD-3-Clause
// Mutexes: a fiber that needs another fiber's mutex suspends, instead of blocking the thread that they share.
#include "mutex.h"

#include <array>
#include <cerrno>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "exec/fiber/fiber_table.h"
#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"
#include "preempt.h"

namespace rehearse::exec::interpose {

int mutex_lock(pthread_mutex_t* mutex) REHEARSE_INTERPOSES("pthread_mutex_lock");
int mutex_trylock(pthread_mutex_t* mutex) REHEARSE_INTERPOSES("pthread_mutex_trylock");
int mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) REHEARSE_INTERPOSES("pthread_mutex_timedlock");
int mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until)
    REHEARSE_INTERPOSES("pthread_mutex_clocklock");
int mutex_unlock(pthread_mutex_t* mutex) REHEARSE_INTERPOSES("pthread_mutex_unlock");

namespace {

constinit Real<int (*)(pthread_mutex_t*)> real_lock("pthread_mutex_lock");
constinit Real<int (*)(pthread_mutex_t*)> real_trylock("pthread_mutex_trylock");
constinit Real<int (*)(pthread_mutex_t*, const timespec*)> real_timedlock("pthread_mutex_timedlock");
constinit Real<int (*)(pthread_mutex_t*, clockid_t, const timespec*)> real_clocklock("pthread_mutex_clocklock");
constinit Real<int (*)(pthread_mutex_t*)> real_unlock("pthread_mutex_unlock");

class MutexObserver final : public Observer {
 public:
  MutexObserver(const Fiber& fiber, const pthread_mutex_t& mutex) : fiber_(fiber), mutex_(mutex) {}

 private:
  Wait describe() const override {
    const auto owner = mutex_.__data.__owner;
    Wait wait{
        .waits_on = "a mutex held by " + describe_owner(fiber_, owner), .kind = Wait::Kind::lock, .object = "mutex"};
    if (owner == fiber_.owner_tag) wait = {fmt::format("a mutex that rank {} holds already", fiber_.rank)};
    if (world_of(fiber_).tags.classify(owner) == OwnerTags::Holder::this_world)
      wait.waits_for = {fiber_.world->fibers[OwnerTags::fiber_id(owner)].rank};
    return wait;
  }

  const Fiber& fiber_;
  const pthread_mutex_t& mutex_;
};

// True for mutexes into which we may write an owner. For robust, priority and elided mutexes, libc itself checks that
// the owner is the thread.
bool is_plain(const pthread_mutex_t& mutex) noexcept {
  constexpr int type = 3;
  constexpr int process_shared = 128;
  return (mutex.__data.__kind & ~(type | process_shared)) == 0;
}

int type_of(const pthread_mutex_t& mutex) noexcept { return mutex.__data.__kind & 3; }

bool is_owned(const pthread_mutex_t& mutex) noexcept {
  return type_of(mutex) == PTHREAD_MUTEX_RECURSIVE || type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK;
}

// Takes the mutex if it is free, or if the fiber already owns it and the mutex is recursive. Writes the fiber into the
// mutex as its owner. libc reads the owner only in kinds of mutexes that check it; for these, unlock_mutex() first
// restores the thread's id. libc clears the owner when it unlocks.
int try_lock(Fiber& fiber, pthread_mutex_t& mutex, bool blocking) {
  if (!is_plain(mutex)) return real_trylock(&mutex);
  const auto me = fiber.owner_tag;
  if (is_owned(mutex)) {
    const auto owner = mutex.__data.__owner;
    if (owner == world_of(fiber).tags.thread_id()) return EBUSY;  // taken on this thread outside of the world
    if (owner == me) {
      if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK) return blocking ? EDEADLK : EBUSY;
      if (mutex.__data.__count == std::numeric_limits<unsigned>::max()) return EAGAIN;
      ++mutex.__data.__count;
      return 0;
    }
  }
  const int result = real_trylock(&mutex);
  if (result == 0) mutex.__data.__owner = me;
  return result;
}

int lock_for_real(Fiber& fiber, pthread_mutex_t& mutex, std::optional<VirtualTime> deadline) {
  const timespec until = deadline ? machine_deadline(fiber, *deadline) : timespec{};
  const int result = deadline ? real_timedlock(&mutex, &until) : real_lock(&mutex);
  if (result == 0 && is_plain(mutex)) mutex.__data.__owner = fiber.owner_tag;
  return result;
}

// True if another thread holds the mutex, or is about to write its id into the mutex.
bool held_elsewhere(const Fiber& fiber, const pthread_mutex_t& mutex) {
  const auto holder = world_of(fiber).tags.classify(mutex.__data.__owner);
  return holder == OwnerTags::Holder::other_thread || holder == OwnerTags::Holder::nobody;
}

// The world has ended and another fiber holds the mutex. Callers of pthread_mutex_lock() are compiled for a function
// that does not throw, so first let the others unwind and unlock the mutex.
void wait_at_the_end(Fiber& fiber, pthread_mutex_t& mutex, const Observer& observer) {
  if (!world_of(fiber).locks.linger(&mutex, observer)) abort_wait(fiber, observer);
}

// The fiber of this thread, if it is in a native section and owns the mutex; otherwise null. Null in helper threads,
// too.
Fiber* owner_in_section(const pthread_mutex_t& mutex) {
  Fiber* const fiber = t_native_fiber;
  if (fiber == nullptr || RankExecutor::current() == nullptr) return nullptr;
  return mutex.__data.__owner == fiber->owner_tag ? fiber : nullptr;
}

int lock_in_section(const Fiber& fiber, pthread_mutex_t* mutex) {
  const auto owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
  if (is_owned(*mutex)) {
    if (Fiber* const again = owner_in_section(*mutex)) return lock_mutex(*again, mutex);
  }
  // Other fibers that hold a mutex do not run before the section ends.
  if (world_of(fiber).tags.classify(owner) != OwnerTags::Holder::this_world) return real_lock(mutex);
  throw std::logic_error(fmt::format(
      "rank {} waits in {} for a mutex held by {}, which can unlock it only after the {}: lock it before the {}, or "
      "not "
      "across what suspends a rank",
      fiber.rank, t_native_code->what, describe_owner(fiber, owner), t_native_code->name, t_native_code->name));
}

int timed_lock(Fiber& fiber, pthread_mutex_t* mutex, clockid_t clock, const timespec& until) {
  const auto at_zero = clock_at_zero(fiber, clock);
  if (!at_zero) return EINVAL;
  const int result = try_lock(fiber, *mutex, true);
  if (result != EBUSY) return result;
  if (!valid(until)) return EINVAL;
  return lock_mutex(fiber, mutex, to_deadline(until, *at_zero));
}

}  // namespace

int lock_mutex(Fiber& fiber, pthread_mutex_t* mutex, std::optional<VirtualTime> deadline) {
  WaitTable& waiters = world_of(fiber).locks;
  for (;;) {
    const int result = try_lock(fiber, *mutex, true);
    if (result != EBUSY) return result;
    if (held_elsewhere(fiber, *mutex)) {
      const int locked = lock_for_real(fiber, *mutex, deadline);
      if (locked != ETIMEDOUT) return locked;
    }
    const MutexObserver observer(fiber, *mutex);
    if (fiber.world->outcome.ended_for(fiber)) {
      wait_at_the_end(fiber, *mutex, observer);
    } else if (waiters.wait_or_end(mutex, observer, deadline) == WaitResult::timed_out) {
      return ETIMEDOUT;
    }
  }
}

int unlock_mutex(Fiber& fiber, pthread_mutex_t* mutex) {
  WorldState& world = world_of(fiber);
  if (is_plain(*mutex) && is_owned(*mutex)) {
    if (mutex->__data.__owner != fiber.owner_tag) return EPERM;
    if (mutex->__data.__count > 1) {
      --mutex->__data.__count;
      return 0;
    }
    mutex->__data.__owner = world.tags.thread_id();
  }
  const int result = real_unlock(mutex);
  if (!world.locks.empty()) world.locks.notify_one(mutex);
  return result;
}

std::string describe_owner(const Fiber& fiber, int owner) {
  switch (world_of(fiber).tags.classify(owner)) {
    case OwnerTags::Holder::this_world: {
      const Fiber& holder = fiber.world->fibers[OwnerTags::fiber_id(owner)];
      if (holder.is_main()) return fmt::format("rank {}", holder.rank);
      return fmt::format("rank {} (thread {})", holder.rank, holder.fiber_of_rank);
    }
    case OwnerTags::Holder::ended_world:
      return "a rank of an earlier world, which ended without unlocking it";
    case OwnerTags::Holder::this_thread:
      return "the thread that runs the ranks";
    case OwnerTags::Holder::other_thread:
    case OwnerTags::Holder::nobody:
      break;
  }
  return "another thread";
}

int mutex_lock(pthread_mutex_t* mutex) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) [[likely]] {
    if (t_native_fiber != nullptr) return lock_in_section(*t_native_fiber, mutex);
    return real_lock(mutex);
  }
  preempt_users_call(*fiber, __builtin_return_address(0));
  if (mutex->__data.__kind == PTHREAD_MUTEX_NORMAL && real_trylock(mutex) == 0) [[likely]] {
    mutex->__data.__owner = fiber->owner_tag;
    return 0;
  }
  return lock_mutex(*fiber, mutex);
}

int mutex_trylock(pthread_mutex_t* mutex) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) [[likely]] {
    Fiber* const again = owner_in_section(*mutex);
    return again != nullptr ? try_lock(*again, *mutex, false) : real_trylock(mutex);
  }
  preempt_users_call(*fiber, __builtin_return_address(0));
  const int result = try_lock(*fiber, *mutex, false);
  if (result == EBUSY) poll_in_vain(*fiber);
  return result;
}

int mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) [[likely]]
    return real_timedlock(mutex, until);
  return timed_lock(*fiber, mutex, CLOCK_REALTIME, *until);
}

int mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) [[likely]]
    return real_clocklock(mutex, clock, until);
  return timed_lock(*fiber, mutex, clock, *until);
}

int mutex_unlock(pthread_mutex_t* mutex) {
  Fiber* fiber = current_fiber();
  if (fiber == nullptr) fiber = owner_in_section(*mutex);
  if (fiber == nullptr) [[likely]]
    return real_unlock(mutex);
  const int result = unlock_mutex(*fiber, mutex);
  if (fiber == current_fiber()) preempt_users_call(*fiber, __builtin_return_address(0));
  return result;
}

std::span<const Interposed> mutex_functions() {
  static const std::array functions = {
      Interposed{"pthread_mutex_lock", reinterpret_cast<const void*>(mutex_lock)},
      Interposed{"pthread_mutex_trylock", reinterpret_cast<const void*>(mutex_trylock)},
      Interposed{"pthread_mutex_timedlock", reinterpret_cast<const void*>(mutex_timedlock)},
      Interposed{"pthread_mutex_clocklock", reinterpret_cast<const void*>(mutex_clocklock)},
      Interposed{"pthread_mutex_unlock", reinterpret_cast<const void*>(mutex_unlock)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
