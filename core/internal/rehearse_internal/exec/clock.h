// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// Where the executor reads time and how it lets time pass. The simulation jumps; a real run sleeps.
//
// Only the executor calls advance_to(), and only when no fiber can run. Not thread safe; called on the executor's
// thread. Does not throw.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual VirtualTime now() const noexcept = 0;

  // What libc's clocks show in a rank when now() is zero.
  struct Epochs {
    VirtualDuration realtime = std::chrono::seconds(1'577'836'800);  // 2020-01-01T00:00:00Z
    // As if the machine had been up for a while, because programs take 0 for "never".
    VirtualDuration monotonic = std::chrono::seconds(1'000);
  };
  virtual Epochs epochs() const noexcept { return {}; }

  // Does time pass while ranks compute? Then to read a clock is not to wait, and switches to nobody.
  virtual bool passes_by_itself() const noexcept { return false; }

  // Returns once now() >= `time`, or before, where something has come from outside that lets a rank go on: what is due
  // by then happens, and the executor asks its idle policy again. A time in the past changes nothing: time never runs
  // backwards.
  virtual void advance_to(VirtualTime time) noexcept = 0;
};

}  // namespace rehearse::exec
