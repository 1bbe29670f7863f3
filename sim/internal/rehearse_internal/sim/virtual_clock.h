// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>

#include <rehearse_internal/exec/clock.h>

namespace rehearse::sim {

// The simulation's clock: time passes only when the executor advances it. Starts at kTimeZero; use one clock for each
// run. Nothing blocks.
class VirtualClock final : public exec::Clock {
 public:
  VirtualClock() = default;
  // `date`: what the ranks' clocks of real time say at kTimeZero, since 1970.
  explicit VirtualClock(std::chrono::seconds date) { epochs_.realtime = date; }

  Epochs epochs() const noexcept override { return epochs_; }
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  VirtualTime now_ = kTimeZero;
  Epochs epochs_ = {};
};

}  // namespace rehearse::sim
