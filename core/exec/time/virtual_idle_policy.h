// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include <rehearse_internal/exec/idle_policy.h>

namespace rehearse::exec {

// Idleness where waiting costs nothing. It knows neither fibers nor a clock: what it counts are its own answers.
//
// The order: everybody has looked at what the others did; then time passes for those who read the clock, or to a timer
// that moves something on; then those who poll look for so many times in vain; then waits give up (the world hangs);
// then it ends.
class VirtualIdlePolicy final : public IdlePolicy {
 public:
  struct Limits {
    std::uint64_t looks = 1'000;            // ExecutorOptions::idle_looks_max
    std::uint64_t timed_looks = 2'000'000;  // ExecutorOptions::idle_timed_looks_max
    // Timeouts in a row, with nothing else that moved in between, of programs that try again for ever. A loop of waits
    // of 100 ms comes past c10d's default timeout of 30 minutes.
    std::uint64_t give_ups = 20'000;
  };

  // Steps of the clock for one who only reads it: they double, and end with the first progress.
  static constexpr VirtualDuration kClockStepMin = std::chrono::microseconds(1);
  static constexpr VirtualDuration kClockStepMax = std::chrono::seconds(1);

  explicit VirtualIdlePolicy(const Limits& limits) noexcept : limits_(limits) {}

  IdleStep next(const IdleFacts& facts) override;
  std::optional<IdleEnd> time_passed() override;

 private:
  IdleStep next_of_pollers(const IdleFacts& facts);
  IdleStep next_of_waiters(const IdleFacts& facts);
  bool take_progress() noexcept;

  const Limits limits_;
  // In a row, without progress.
  std::uint64_t looks_ = 0;
  std::uint64_t timed_looks_ = 0;
  std::uint64_t give_ups_ = 0;
  VirtualDuration clock_step_{};
};

}  // namespace rehearse::exec
