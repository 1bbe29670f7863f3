// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <rehearse_internal/exec/clock.h>

namespace rehearse::sim {

// Time that passes by being told to: the simulation's clock. Starts at kTimeZero; one for each run. Nothing
// blocks.
class VirtualClock final : public exec::Clock {
 public:
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  VirtualTime now_ = kTimeZero;
};

}  // namespace rehearse::sim
