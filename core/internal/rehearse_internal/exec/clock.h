// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// The executor reads the time here, and makes time pass. A simulation's clock jumps; a real run's clock sleeps.
//
// Only the executor calls advance_to(), and only when no fiber can run. Not thread safe; called on the executor's
// thread. Does not throw.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual VirtualTime now() const noexcept = 0;

  // The values of libc's clocks in a rank when now() is zero.
  struct Epochs {
    VirtualDuration realtime = std::chrono::seconds(1'577'836'800);  // 2020-01-01T00:00:00Z
    // Not 0, because programs take 0 for "never".
    VirtualDuration monotonic = std::chrono::seconds(1'000);
  };
  virtual Epochs epochs() const noexcept { return {}; }

  // True if time passes while ranks compute. Then reading a clock is no wait, and does not switch to another fiber.
  virtual bool passes_by_itself() const noexcept { return false; }

  // Returns when now() >= `time`, or earlier: if something from outside lets a rank go on, or so that the executor sees
  // an interrupt soon. Afterwards the timers that are due at now() fire. A time in the past has no effect.
  virtual void advance_to(VirtualTime time) noexcept = 0;
};

}  // namespace rehearse::exec
