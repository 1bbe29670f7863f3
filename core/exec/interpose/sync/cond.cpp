// SPDX-License-Identifier: BSD-3-Clause
// Condition variables: a waiting fiber is in our table and does not touch libc's object, so nothing polls.
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <rehearse_internal/exec/interpreter.h>

#include "exec/interpose/real.h"
#include "exec/interpose/time/time_map.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"
#include "mutex.h"

namespace rehearse::exec::interpose {

int cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) REHEARSE_INTERPOSES("pthread_cond_wait");
int cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* until)
    REHEARSE_INTERPOSES("pthread_cond_timedwait");
int cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, const timespec* until)
    REHEARSE_INTERPOSES("pthread_cond_clockwait");
int cond_signal(pthread_cond_t* cond) REHEARSE_INTERPOSES("pthread_cond_signal");
int cond_broadcast(pthread_cond_t* cond) REHEARSE_INTERPOSES("pthread_cond_broadcast");

// Replaces the libstdc++ function, because for programs linked before GCC 12 (LibTorch's wheels among them) it is a
// noexcept wrapper, which RankAborted could not leave. Its callers are compiled for a function that may throw.
void std_condition_variable_wait(std::condition_variable* cond, std::unique_lock<std::mutex>& lock)
    REHEARSE_INTERPOSES("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

namespace {

thread_local SignalledConditions* t_signalled = nullptr;

constexpr const char* kCondVersion = "GLIBC_2.3.2";
constinit Real<int (*)(pthread_cond_t*, pthread_mutex_t*)> real_wait("pthread_cond_wait", kCondVersion);
constinit Real<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)> real_timedwait("pthread_cond_timedwait",
                                                                                           kCondVersion);
constinit Real<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> real_clockwait(
    "pthread_cond_clockwait");
constinit Real<int (*)(pthread_cond_t*)> real_signal("pthread_cond_signal", kCondVersion);
constinit Real<int (*)(pthread_cond_t*)> real_broadcast("pthread_cond_broadcast", kCondVersion);

int wait_in_fiber(Fiber& fiber, pthread_cond_t* cond, pthread_mutex_t* mutex, std::optional<VirtualTime> deadline) {
  const OpaqueObserver observer("a condition variable");
  if (fiber.world->outcome.ended_for(fiber)) abort_wait(fiber, observer);
  WaitTable& waiters = world_of(fiber).conditions;
  const OutsideWait outside(fiber, waiters, cond);
  if (const int error = unlock_mutex(fiber, mutex)) return error;
  const auto result = waiters.wait_or_end(cond, observer, deadline);
  // A fiber that ends must not consume the signal.
  if (!result && !fiber.world->outcome.ended()) waiters.notify_one(cond);
  const int error = lock_mutex(fiber, mutex);
  if (!result) abort_wait(fiber, observer);
  if (error != 0) return error;
  return *result == WaitResult::timed_out ? ETIMEDOUT : 0;
}

int timed_wait(Fiber& fiber, pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, const timespec& until) {
  const auto at_zero = clock_at_zero(fiber, clock);
  if (!at_zero || !valid(until)) return EINVAL;
  return wait_in_fiber(fiber, cond, mutex, to_deadline(until, *at_zero));
}

// libstdc++'s own function calls pthread_cond_wait(), which is ours.
void wait_exempt(std::condition_variable* cond, std::unique_lock<std::mutex>& lock) {
  real_wait(cond->native_handle(), lock.mutex()->native_handle());
}

bool is_of_interpreter(const pthread_cond_t* cond) noexcept {
  const auto* const owner = interpreter();
  return owner != nullptr && owner->owns_condition(cond);
}

// The clock set by pthread_condattr_setclock(): bit 1 of __wrefs.
clockid_t clock_of(const pthread_cond_t& cond) noexcept {
  return (cond.__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

}  // namespace

int cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || is_of_interpreter(cond)) [[likely]]
    return real_wait(cond, mutex);
  return wait_in_fiber(*fiber, cond, mutex, std::nullopt);
}

int cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || is_of_interpreter(cond)) [[likely]]
    return real_timedwait(cond, mutex, until);
  return timed_wait(*fiber, cond, mutex, clock_of(*cond), *until);
}

int cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || is_of_interpreter(cond)) [[likely]]
    return real_clockwait(cond, mutex, clock, until);
  return timed_wait(*fiber, cond, mutex, clock, *until);
}

int cond_signal(pthread_cond_t* cond) {
  if (t_signalled != nullptr) [[unlikely]]
    t_signalled->add(cond);
  // A timer may complete what a rank waits for. No fiber runs then, but the world's fibers wait in our table.
  if (WorldState* const world = world_of_host()) {
    if (world->conditions.notify_one(cond)) return 0;
  }
  signal_outside(cond);
  return real_signal(cond);
}

int cond_broadcast(pthread_cond_t* cond) {
  if (WorldState* const world = world_of_host()) world->conditions.notify_all(cond);
  signal_outside(cond);
  return real_broadcast(cond);
}

void std_condition_variable_wait(std::condition_variable* cond, std::unique_lock<std::mutex>& lock) {
  cond_wait(cond->native_handle(), lock.mutex()->native_handle());
}

bool libstdcxx_calls_ours() {
  std::condition_variable probe;
  const SignalledConditions signalled;
  probe.notify_one();
  return !signalled.all().empty();
}

std::span<const Interposed> condition_functions() {
  static const std::array functions = {
      Interposed{"pthread_cond_wait", reinterpret_cast<const void*>(cond_wait), kCondVersion},
      Interposed{"pthread_cond_timedwait", reinterpret_cast<const void*>(cond_timedwait), kCondVersion},
      Interposed{"pthread_cond_clockwait", reinterpret_cast<const void*>(cond_clockwait)},
      Interposed{"pthread_cond_signal", reinterpret_cast<const void*>(cond_signal), kCondVersion},
      Interposed{"pthread_cond_broadcast", reinterpret_cast<const void*>(cond_broadcast), kCondVersion},
      Interposed{"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
                 reinterpret_cast<const void*>(std_condition_variable_wait), nullptr,
                 reinterpret_cast<const void*>(wait_exempt)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose

namespace rehearse::exec {

SignalledConditions::SignalledConditions() noexcept : before_(std::exchange(interpose::t_signalled, this)) {}
SignalledConditions::~SignalledConditions() { interpose::t_signalled = before_; }

}  // namespace rehearse::exec
