// SPDX-License-Identifier: BSD-3-Clause
// Sleeps take the world's time, and sched_yield() counts as a poll.
#include <array>
#include <cerrno>
#include <utility>

#include <unistd.h>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/this_rank.h>

#include "exec/interpose/process/openmp.h"
#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/polling.h"
#include "time_map.h"

namespace rehearse::exec::interpose {

int sleep_nanosleep(const timespec* duration, timespec* left) REHEARSE_INTERPOSES("nanosleep");
int sleep_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left)
    REHEARSE_INTERPOSES("clock_nanosleep");
int sleep_usleep(useconds_t microseconds) REHEARSE_INTERPOSES("usleep");
unsigned sleep_sleep(unsigned seconds) REHEARSE_INTERPOSES("sleep");
int sleep_sched_yield() REHEARSE_INTERPOSES("sched_yield");

namespace {

constinit Real<int (*)(const timespec*, timespec*)> real_nanosleep("nanosleep");
constexpr const char* kSleepVersion = "GLIBC_2.17";
constinit Real<int (*)(clockid_t, int, const timespec*, timespec*)> real_clock_nanosleep("clock_nanosleep",
                                                                                         kSleepVersion);
constinit Real<int (*)(useconds_t)> real_usleep("usleep");
constinit Real<unsigned (*)(unsigned)> real_sleep("sleep");
constinit Real<int (*)()> real_sched_yield("sched_yield");

// Never wakes too early: a practically endless sleep lasts until the world ends.
void sleep_in_fiber(const Fiber& fiber, VirtualDuration duration) {
  const auto now = fiber.world->clock.now();
  if (const auto due = after(now, duration)) {
    this_rank::sleep_for(duration);
    return;
  }
  this_rank::wait_for_the_end(FixedObserver("a sleep without end"));
}

// Returns an error number, as clock_nanosleep() does.
int sleep_on_clock(const Fiber& fiber, VirtualDuration at_zero, int flags, const timespec& time) {
  if (!valid(time) || time.tv_sec < 0) return EINVAL;
  auto duration = to_duration(time);
  if ((flags & TIMER_ABSTIME) != 0) {
    const auto reading = fiber.world->clock.now().time_since_epoch() + at_zero;
    if (duration <= reading) return 0;
    duration -= reading;
  }
  sleep_in_fiber(fiber, duration);
  return 0;
}

// An OpenMP library yields while it holds its own locks. Another rank must not run then, because the library takes all
// ranks for one thread.
bool is_openmps_own(const void* caller) noexcept {
  thread_local const void* last = nullptr;
  thread_local bool answer = false;
  if (caller != std::exchange(last, caller)) answer = openmp_library_of(caller) != nullptr;
  return answer;
}

}  // namespace

int sleep_nanosleep(const timespec* duration, timespec* left) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_nanosleep(duration, left);
  const int error = sleep_on_clock(*fiber, {}, 0, *duration);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int sleep_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_clock_nanosleep(clock, flags, time, left);
  const auto at_zero = clock_at_zero(*fiber, clock);
  if (!at_zero) return real_clock_nanosleep(clock, flags, time, left);
  return sleep_on_clock(*fiber, *at_zero, flags, *time);
}

int sleep_usleep(useconds_t microseconds) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_usleep(microseconds);
  sleep_in_fiber(*fiber, std::chrono::microseconds(microseconds));
  return 0;
}

unsigned sleep_sleep(unsigned seconds) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_sleep(seconds);
  sleep_in_fiber(*fiber, std::chrono::seconds(seconds));
  return 0;
}

int sleep_sched_yield() {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || is_openmps_own(__builtin_return_address(0))) return real_sched_yield();
  poll(*fiber);
  return 0;
}

std::span<const Interposed> sleep_functions() {
  static const std::array functions = {
      Interposed{"nanosleep", reinterpret_cast<const void*>(sleep_nanosleep)},
      Interposed{"clock_nanosleep", reinterpret_cast<const void*>(sleep_clock_nanosleep), kSleepVersion},
      Interposed{"usleep", reinterpret_cast<const void*>(sleep_usleep)},
      Interposed{"sleep", reinterpret_cast<const void*>(sleep_sleep)},
      Interposed{"sched_yield", reinterpret_cast<const void*>(sleep_sched_yield)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
