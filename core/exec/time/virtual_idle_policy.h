// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include <rehearse_internal/exec/idle_policy.h>

namespace rehearse::exec {

// The idle policy of virtual time, in which waiting costs nothing. Knows neither fibers nor a clock; it counts its own
// answers.
//
// The order: first every fiber looks at what the others have done. Then time passes: each further poll without result
// takes a little time, and timers that become due meanwhile fire. After many polls without result, pollers count as
// waiting: time jumps from timer to timer, and the world ends when none is left.
//
// The times of polls depend on what has changed, never on when timers are due. Otherwise a timer without any effect (a
// fault that does not fire) would change the run.
class VirtualIdlePolicy final : public IdlePolicy {
 public:
  struct Limits {
    VirtualDuration poll_cost = std::chrono::microseconds(1);  // ExecutorOptions::poll_cost
    std::uint64_t polls = 1'000;                               // ExecutorOptions::idle_polls_max
    std::uint64_t timed_polls = 2'000'000;                     // ExecutorOptions::idle_timed_polls_max
    // How many timeouts in a row, without other progress in between, end the run, for programs that retry forever. Lets
    // a loop of waits of 100 ms outlast c10d's default timeout of 30 minutes.
    std::uint64_t give_ups = 20'000;
  };

  // The most time that a poll may take: the first limit is for polls that read the clock, the second for other polls. A
  // loop that reads the clock may have to wait for an hour. A loop that polls a limited number of times must not
  // outlast the timeouts of other ranks.
  static constexpr VirtualDuration kTimedCostMax = std::chrono::seconds(1);
  static constexpr VirtualDuration kCostMax = std::chrono::milliseconds(1);
  // If a timeout of other ranks fires after this many polls without result, the polling loop counts as endless, not as
  // a loop that was about to give up.
  static constexpr std::uint64_t kPollsOfAHang = 1'000;

  // How many of the last clock reads and short sleeps before a livelock are near it; enough for each rank to look once.
  static constexpr std::uint64_t kPollsNoted = 20'000;

  explicit VirtualIdlePolicy(const Limits& limits) noexcept : limits_(limits) {}

  IdleStep next(const IdleFacts& facts) override;
  std::optional<IdleEnd> time_passed() override;
  bool is_near_livelock() const noexcept override { return timed_polls_ + kPollsNoted > limits_.timed_polls; }

 private:
  IdleStep next_of_pollers(const IdleFacts& facts);
  IdleStep next_of_waiters(const IdleFacts& facts);
  IdleStep next_timer_of_pollers(const IdleFacts& facts) const;
  VirtualDuration cost_of_poll(VirtualTime now) const noexcept;
  bool is_poll_for_ever(const IdleFacts& facts) const noexcept;
  bool take_progress() noexcept;
  bool moves_for_ever() noexcept;

  const Limits limits_;
  // How many polls and timeouts came in a row, without progress in between.
  std::uint64_t polls_ = 0;
  std::uint64_t timed_polls_ = 0;
  std::uint64_t give_ups_ = 0;
  std::uint64_t moves_ = 0;  // rounds in which ranks did more than poll, since time last advanced to a timer
  std::optional<VirtualTime> time_of_polls_;
  std::optional<VirtualTime> polling_since_;
  std::optional<VirtualTime> next_poll_;
  bool is_timed_ = false;      // a rank has read the clock before the next poll
  bool untimed_poll_ = false;  // time has passed for a poll without a clock read; such polls have their own limit
};

}  // namespace rehearse::exec
