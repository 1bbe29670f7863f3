// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

  // Returns once now() >= `time`, or before, where something has come from outside that lets a rank go on: what is due
  // by then happens, and the executor asks its idle policy again. A time in the past changes nothing: time never runs
  // backwards.
  virtual void advance_to(VirtualTime time) noexcept = 0;
};

}  // namespace rehearse::exec
