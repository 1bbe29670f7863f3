// SPDX-License-Identifier: BSD-3-Clause
#include "virtual_idle_policy.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::exec {

IdleStep VirtualIdlePolicy::next(const IdleFacts& facts) {
  return facts.any_polls ? next_of_pollers(facts) : next_of_waiters(facts);
}

std::optional<IdleEnd> VirtualIdlePolicy::time_passed() {
  if (progress_ || ++timed_looks_ <= limits_.timed_looks) return std::nullopt;
  return IdleEnd{Ending::livelock,
                 fmt::format("{} looks at the clock or short sleeps while nothing else happened", timed_looks_)};
}

bool VirtualIdlePolicy::take_progress() noexcept {
  if (!std::exchange(progress_, false)) return false;
  looks_ = 0;
  timed_looks_ = 0;
  give_ups_ = 0;
  clock_step_ = {};
  return true;
}

IdleStep VirtualIdlePolicy::next_of_pollers(const IdleFacts& facts) {
  const bool clock_was_read = std::exchange(clock_was_read_, false);
  const bool stepped = std::exchange(stepped_, false);
  auto step = IdleStep::look_again();
  step.moved = take_progress();
  // Before time passes, everybody has looked at what the others left behind.
  if (step.moved || stepped) return step;
  if (clock_was_read) {
    // In steps, for a poller may have a time limit of its own, and that may come first.
    clock_step_ = std::clamp(clock_step_ * 2, kClockStepMin, kClockStepMax);
    const auto next = facts.now + clock_step_;
    return IdleStep::let_time_pass(facts.due ? std::min(*facts.due, next) : next);
  }
  if (facts.due && facts.any_moves_on) return IdleStep::let_time_pass(*facts.due);
  if (++looks_ <= limits_.looks) return step;  // it may be a loop that gives up after so many looks
  if (!facts.due) {
    return IdleStep::end_run(Ending::livelock,
                             fmt::format("{} looks at things that nobody is left to change", limits_.looks));
  }
  step = IdleStep::let_time_pass(*facts.due);
  step.hangs = true;
  return step;
}

// Also where nobody is there to look again.
IdleStep VirtualIdlePolicy::next_of_waiters(const IdleFacts& facts) {
  auto step = IdleStep::look_again();
  if (facts.any_in_kernel) {
    const bool stepped = std::exchange(stepped_, false);
    step.moved = take_progress();
    if (step.moved || stepped) return step;
  }
  // A hang that has just been given up is told with the deadlock.
  if (!facts.due) return IdleStep::end_run(Ending::deadlock, "no rank can go on and no timer is running");
  step = IdleStep::let_time_pass(*facts.due);
  step.moved = take_progress();
  step.hangs = !facts.any_moves_on;
  if (step.hangs && ++give_ups_ > limits_.give_ups) {
    step.kind = IdleStep::Kind::end;
    step.end = {Ending::livelock, fmt::format("{} timeouts in a row while nothing else happened", limits_.give_ups)};
  }
  return step;
}

}  // namespace rehearse::exec
