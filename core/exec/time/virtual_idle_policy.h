// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include <rehearse_internal/exec/idle_policy.h>

namespace rehearse::exec {

// Idleness where waiting costs nothing. It knows neither fibers nor a clock: what it counts are its own answers.
//
// The order: everybody looks at what the others did. Then time passes: each further look in vain costs a little, and
// the timers that come due meanwhile fire. After so many looks in vain the pollers count as waiting: time goes from
// timer to timer, and the world ends when none is left.
//
// The times of looks depend on what has changed, never on when timers are due. Otherwise a timer without any effect (a
// fault that does not fire) would change the run.
class VirtualIdlePolicy final : public IdlePolicy {
 public:
  struct Limits {
    VirtualDuration look_cost = std::chrono::microseconds(1);  // ExecutorOptions::look_cost
    std::uint64_t looks = 1'000;                               // ExecutorOptions::idle_looks_max
    std::uint64_t timed_looks = 2'000'000;                     // ExecutorOptions::idle_timed_looks_max
    // Timeouts in a row, with nothing else that moved in between, of programs that try again forever. A loop of waits
    // of 100 ms comes past c10d's default timeout of 30 minutes.
    std::uint64_t give_ups = 20'000;
  };

  // What a look may cost at most: of one that reads the clock, and of another. A loop of looks that ends by itself must
  // not outlast the timeouts of other ranks; one that reads the clock may have an hour to wait for.
  static constexpr VirtualDuration kTimedCostMax = std::chrono::seconds(1);
  static constexpr VirtualDuration kCostMax = std::chrono::milliseconds(1);
  // So many looks in vain before a timeout of others are a poll forever, not a loop that was about to give up.
  static constexpr std::uint64_t kLooksOfAHang = 1'000;

  explicit VirtualIdlePolicy(const Limits& limits) noexcept : limits_(limits) {}

  IdleStep next(const IdleFacts& facts) override;
  std::optional<IdleEnd> time_passed() override;

 private:
  IdleStep next_of_pollers(const IdleFacts& facts);
  IdleStep next_of_waiters(const IdleFacts& facts);
  IdleStep next_timer_of_pollers(const IdleFacts& facts) const;
  VirtualDuration cost_of_look(VirtualTime now) const noexcept;
  bool is_poll_for_ever(const IdleFacts& facts) const noexcept;
  bool take_progress() noexcept;
  bool moves_for_ever() noexcept;

  const Limits limits_;
  // In a row, without progress.
  std::uint64_t looks_ = 0;
  std::uint64_t timed_looks_ = 0;
  std::uint64_t give_ups_ = 0;
  std::uint64_t moves_ = 0;  // between which time has passed for looks alone
  std::optional<VirtualTime> time_of_looks_;
  std::optional<VirtualTime> looking_since_;
  std::optional<VirtualTime> next_look_;
  bool is_timed_ = false;      // a rank has read the clock before the next look
  bool untimed_look_ = false;  // what time has passed for: such looks have a limit of their own
};

}  // namespace rehearse::exec
