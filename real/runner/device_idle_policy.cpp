// SPDX-License-Identifier: BSD-3-Clause
#include "device_idle_policy.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::real {

using exec::Ending;
using exec::IdleFacts;
using exec::IdleStep;

IdleStep DeviceIdlePolicy::next(const IdleFacts& facts) {
  const bool completed = devices_->poll();
  const bool moved = std::exchange(progress_, false) || completed;
  const bool stepped = std::exchange(stepped_, false);
  if (moved) {
    nap_ = {};
    polling_since_.reset();
  }
  if (moved || stepped) waiting_since_.reset();
  IdleStep step = IdleStep::poll_again();
  if (completed) {
    step.moved = true;
    return step;
  }
  if (devices_->pending()) {
    step = next_of_devices(facts);
  } else if (facts.any_polls) {
    step = next_of_pollers(facts, moved || stepped);
  } else if (!facts.any_in_kernel || !(moved || stepped)) {
    step = next_of_waiters(facts);
  }
  step.moved = moved;
  return step;
}

// Asks the devices again at once, because their operations end within microseconds.
IdleStep DeviceIdlePolicy::next_of_devices(const IdleFacts& facts) {
  const bool due = facts.due && *facts.due <= facts.now;
  return due ? IdleStep::let_time_pass(*facts.due) : IdleStep::poll_again();
}

IdleStep DeviceIdlePolicy::next_of_pollers(const IdleFacts& facts, bool anything_done) {
  const bool reads_clock = std::exchange(clock_was_read_, false);
  if (anything_done) return IdleStep::poll_again();
  if (!polling_since_) polling_since_ = facts.now;
  // A rank that reads the clock may wait for a point in time, which will come in any case.
  if (!facts.due && !reads_clock && facts.now - *polling_since_ > limits_.stall_timeout) {
    return IdleStep::end_run(
        Ending::livelock,
        fmt::format("for {} ms ranks have only polled, and no rank is left to change the answer",
                    std::chrono::duration_cast<std::chrono::milliseconds>(facts.now - *polling_since_).count()));
  }
  nap_ = std::clamp(nap_ * 2, kNapMin, kNapMax);
  const auto until = facts.now + nap_;
  return IdleStep::let_time_pass(facts.due ? std::min(*facts.due, until) : until);
}

IdleStep DeviceIdlePolicy::next_of_waiters(const IdleFacts& facts) {
  if (facts.due && facts.any_moves_on) return IdleStep::let_time_pass(*facts.due);
  if (!waiting_since_) waiting_since_ = facts.now;
  const bool patient = facts.now - *waiting_since_ <= limits_.stall_timeout;
  if (facts.any_waits_in_libc && patient) {
    const auto until = facts.now + kWaitMax;
    return IdleStep::let_time_pass(facts.due ? std::min(*facts.due, until) : until);
  }
  auto step = IdleStep::end_run(Ending::deadlock,
                                facts.due ? "no rank can go on, no device is at work, and only timeouts are left"
                                          : "no rank can go on, no device is at work, and no timer is running");
  step.hangs = facts.due.has_value();
  return step;
}

}  // namespace rehearse::real
