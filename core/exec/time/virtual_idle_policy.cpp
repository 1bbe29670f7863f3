// SPDX-License-Identifier: BSD-3-Clause
#include "virtual_idle_policy.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::exec {

IdleStep VirtualIdlePolicy::next(const IdleFacts& facts) {
  untimed_poll_ = false;
  if (facts.now != time_of_polls_) moves_ = 0;
  const IdleStep step = facts.any_polls ? next_of_pollers(facts) : next_of_waiters(facts);
  if (step.kind == IdleStep::Kind::poll_again) {
    time_of_polls_ = facts.now;
  } else if (step.poll) {
    time_of_polls_ = step.to;
  }
  return step;
}

// A rank that polls one thing and changes another each time (a heartbeat in the store) would never let time pass.
// Beyond a limit, its changes count no more than polls without result, until a timer fires.
bool VirtualIdlePolicy::moves_for_ever() noexcept {
  constexpr std::uint64_t kMovesMost = 10'000;
  if (++moves_ <= kMovesMost) return false;
  progress_ = false;
  return true;
}

std::optional<IdleEnd> VirtualIdlePolicy::time_passed() {
  if (untimed_poll_) return std::nullopt;
  if (progress_ || ++timed_polls_ <= limits_.timed_polls) return std::nullopt;
  return IdleEnd{Ending::livelock,
                 fmt::format("{} clock reads or short sleeps while nothing else happened", timed_polls_)};
}

bool VirtualIdlePolicy::take_progress() noexcept {
  if (!std::exchange(progress_, false)) return false;
  polls_ = 0;
  timed_polls_ = 0;
  give_ups_ = 0;
  polling_since_.reset();
  return true;
}

// The time until the next poll: a fixed fraction of the time polled in vain so far, within limits. Thus a few thousand
// polls outlast a wait of seconds, and yet the poll that ends the wait comes late by no more than this time.
VirtualDuration VirtualIdlePolicy::cost_of_poll(VirtualTime now) const noexcept {
  constexpr std::int64_t kParts = 500;
  const auto spent = now - polling_since_.value_or(now);
  const auto most = std::max(is_timed_ ? kTimedCostMax : kCostMax, limits_.poll_cost);
  return std::clamp(spent / kParts, limits_.poll_cost, most);
}

bool VirtualIdlePolicy::is_poll_for_ever(const IdleFacts& facts) const noexcept {
  return !facts.any_moves_on && polls_ >= std::min(limits_.polls, kPollsOfAHang);
}

IdleStep VirtualIdlePolicy::next_of_pollers(const IdleFacts& facts) {
  const bool clock_was_read = std::exchange(clock_was_read_, false);
  const bool stepped = std::exchange(stepped_, false);
  auto step = IdleStep::poll_again();
  // Before time passes, every fiber has looked at what the others have changed.
  if ((progress_ || stepped) && !moves_for_ever()) {
    step.moved = take_progress();
    next_poll_.reset();
    return step;
  }
  if (!polling_since_) polling_since_ = facts.now;
  if (!next_poll_) {
    is_timed_ = clock_was_read;
    if (!is_timed_ && polls_++ >= limits_.polls) return next_timer_of_pollers(facts);
    next_poll_ = facts.now + cost_of_poll(facts.now);
  }
  step = IdleStep::let_time_pass(facts.due ? std::min(*facts.due, *next_poll_) : *next_poll_);
  step.poll = step.to == *next_poll_;
  if (step.poll) next_poll_.reset();
  untimed_poll_ = step.poll && !is_timed_;
  if (step.to == facts.due && is_poll_for_ever(facts)) {
    step.hangs = true;
    step.hung_since = polling_since_;
  }
  return step;
}

// The pollers have looked often enough: only a timer can still change anything.
IdleStep VirtualIdlePolicy::next_timer_of_pollers(const IdleFacts& facts) const {
  if (!facts.due) {
    return IdleStep::end_run(
        Ending::livelock,
        fmt::format("stopped after {} polls, because no rank is left to change their answer", limits_.polls));
  }
  auto step = IdleStep::let_time_pass(*facts.due);
  step.poll = false;
  step.hangs = is_poll_for_ever(facts);
  step.hung_since = polling_since_;
  return step;
}

// No fiber polls. Fibers that wait in the kernel look again first, if another rank may have changed something.
IdleStep VirtualIdlePolicy::next_of_waiters(const IdleFacts& facts) {
  auto step = IdleStep::poll_again();
  if (facts.any_in_kernel) {
    const bool stepped = std::exchange(stepped_, false);
    step.moved = take_progress();
    if (step.moved || stepped) return step;
  }
  // `moved` stays false: if a timeout has just ended a hang, the report on the deadlock still shows that hang's waits.
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
