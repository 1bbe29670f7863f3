// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <rehearse_internal/exec/clock.h>

namespace rehearse::sim {

// The simulation's clock: time passes only when the executor advances it. Starts at kTimeZero; use one clock for each
// run. Nothing blocks.
class VirtualClock final : public exec::Clock {
 public:
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  VirtualTime now_ = kTimeZero;
};

}  // namespace rehearse::sim
