// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <time.h>

#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/machine_time.h>

#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

// A deadline later than this time counts as none: a world that waits only for such a deadline is in a deadlock.
inline constexpr VirtualTime kNever{std::chrono::hours(24 * 365 * 100)};

// The readings of the rank's clocks at the world's time zero; a fault may have made them jump.
inline Clock::Epochs epochs_of(const Fiber& fiber) noexcept {
  auto epochs = fiber.world->clock.epochs();
  const auto& jumps = world_of(fiber).clock_jumps;
  if (jumps.empty()) return epochs;
  epochs.realtime += jumps[static_cast<std::size_t>(fiber.rank)].realtime;
  epochs.monotonic += jumps[static_cast<std::size_t>(fiber.rank)].monotonic;
  return epochs;
}

// The reading of a clock at the world's time zero, if the clock follows the world's time in a rank; nullopt for other
// clocks, such as those for CPU time.
inline std::optional<VirtualDuration> clock_at_zero(const Fiber& fiber, clockid_t clock) noexcept {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
      return epochs_of(fiber).realtime;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
      return epochs_of(fiber).monotonic;
    default:
      return std::nullopt;
  }
}

inline timespec to_timespec(VirtualDuration reading) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(reading);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((reading - seconds).count())};
}

inline bool valid(const timespec& time) noexcept { return time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000; }

// Saturates, because programs pass the largest possible time to mean "forever".
inline VirtualDuration to_duration(const timespec& time) noexcept {
  constexpr auto seconds_max = std::chrono::duration_cast<std::chrono::seconds>(VirtualDuration::max()).count() - 1;
  if (time.tv_sec > seconds_max) return VirtualDuration::max();
  if (time.tv_sec < -seconds_max) return VirtualDuration::min();
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Converts a clock's time to a deadline in the world's time; nullopt if the deadline counts as none.
inline std::optional<VirtualTime> to_deadline(const timespec& time, VirtualDuration at_zero) noexcept {
  const auto reading = to_duration(time);
  if (reading <= at_zero) return kTimeZero;
  if (reading > at_zero + kNever.time_since_epoch()) return std::nullopt;  // their difference may overflow
  return VirtualTime(reading - at_zero);
}

// When the machine's CLOCK_REALTIME has passed as much time as is left until `deadline` in the world. For waits in libc
// for a real thread, because the world's time stands still while they block the thread.
inline timespec machine_deadline(const Fiber& fiber, VirtualTime deadline) noexcept {
  return to_timespec(machine_wall_time() + (deadline - fiber.world->clock.now()));
}

inline std::optional<VirtualTime> after(VirtualTime now, VirtualDuration duration) noexcept {
  if (duration > kNever - now) return std::nullopt;
  return now + duration;
}

}  // namespace rehearse::exec::interpose
