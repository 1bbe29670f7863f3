// SPDX-License-Identifier: BSD-3-Clause
// Clocks: a rank reads its world's time on every clock, except those for CPU time.
#include <array>

#include <sys/time.h>

#include <rehearse_internal/exec/clock_jump.h>
#include <rehearse_internal/exec/machine_time.h>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/polling.h"
#include "time_map.h"

namespace rehearse::exec::interpose {

int clock_gettime_here(clockid_t clock, timespec* out) REHEARSE_INTERPOSES("clock_gettime");
int clock_gettimeofday(timeval* out, void* zone) REHEARSE_INTERPOSES("gettimeofday");
time_t clock_time(time_t* out) REHEARSE_INTERPOSES("time");
int clock_timespec_get(timespec* out, int base) REHEARSE_INTERPOSES("timespec_get");

namespace {

constexpr const char* kClockVersion = "GLIBC_2.17";
constinit Real<int (*)(clockid_t, timespec*)> real_clock_gettime("clock_gettime", kClockVersion);
constinit Real<int (*)(timeval*, void*)> real_gettimeofday("gettimeofday");
constinit Real<time_t (*)(time_t*)> real_time("time");
constinit Real<int (*)(timespec*, int)> real_timespec_get("timespec_get");

// In a native section virtual time stands still, because no other fiber runs; so a read there is no poll.
timespec read_in_fiber(Fiber& fiber, VirtualDuration at_zero) {
  if (&fiber == current_fiber()) poll_clock(fiber);
  return to_timespec(fiber.world->clock.now().time_since_epoch() + at_zero);
}

timespec read_realtime(Fiber& fiber) { return read_in_fiber(fiber, epochs_of(fiber).realtime); }

}  // namespace

int clock_gettime_here(clockid_t clock, timespec* out) {
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr) return real_clock_gettime(clock, out);
  const auto at_zero = clock_at_zero(*fiber, clock);
  if (!at_zero) return real_clock_gettime(clock, out);
  *out = read_in_fiber(*fiber, *at_zero);
  return 0;
}

int clock_gettimeofday(timeval* out, void* zone) {
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr || out == nullptr) return real_gettimeofday(out, zone);
  const auto now = read_realtime(*fiber);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1'000;
  return 0;
}

time_t clock_time(time_t* out) {
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr) return real_time(out);
  const auto now = read_realtime(*fiber);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int clock_timespec_get(timespec* out, int base) {
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr || base != TIME_UTC) return real_timespec_get(out, base);
  *out = read_realtime(*fiber);
  return base;
}

std::span<const Interposed> clock_functions() {
  static const std::array functions = {
      Interposed{"clock_gettime", reinterpret_cast<const void*>(clock_gettime_here), kClockVersion},
      Interposed{"gettimeofday", reinterpret_cast<const void*>(clock_gettimeofday)},
      Interposed{"time", reinterpret_cast<const void*>(clock_time)},
      Interposed{"timespec_get", reinterpret_cast<const void*>(clock_timespec_get)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose

namespace rehearse::exec {
namespace {

VirtualDuration read_machines(clockid_t clock) noexcept {
  timespec now{};
  interpose::real_clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

void jump_clocks(RankExecutor& executor, int rank, const ClockJump& by) {
  auto& jumps = executor.parts().interposed.clock_jumps;
  jumps.resize(static_cast<std::size_t>(executor.options().ranks));
  auto& jump = jumps[static_cast<std::size_t>(rank)];
  jump.realtime += by.realtime;
  jump.monotonic += by.monotonic;
}

VirtualDuration machine_time() noexcept { return read_machines(CLOCK_MONOTONIC); }
VirtualDuration machine_wall_time() noexcept { return read_machines(CLOCK_REALTIME); }

}  // namespace rehearse::exec
