// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <rehearse/exec/time.h>

namespace rehearse::real {

// Measures for how long another process has sent nothing while this one ran. Time in which this process did not run,
// because it was stopped or had no processor, does not count as the other process's silence.
class Silence {
 public:
  // look() must be called at least once in `look_interval`. A silence of one and a half times `check_timeout` is too
  // long.
  Silence(VirtualDuration look_interval, VirtualDuration check_timeout)
      : interval_(look_interval), check_timeout_(check_timeout) {}

  void look(VirtualTime now) {
    const auto passed = last_ == VirtualTime{} ? VirtualDuration::zero() : now - last_;
    last_ = now;
    const auto ran = std::min(passed, interval_ * 2);
    length_ += ran;
    since_away_ += ran;
    if (since_away_ > check_timeout_ * 2) away_ = VirtualDuration::zero();
    if (passed - ran <= away_) return;
    away_ = passed - ran;
    since_away_ = VirtualDuration::zero();
  }

  void heard() { length_ = VirtualDuration::zero(); }

  VirtualDuration length() const { return length_; }
  bool is_too_long() const { return length_ >= check_timeout_ * 3 / 2; }

  // The longest recent time in which this process itself did not run.
  VirtualDuration away() const { return away_; }

 private:
  const VirtualDuration interval_, check_timeout_;
  VirtualTime last_{};
  VirtualDuration length_{}, since_away_{}, away_{};
};

}  // namespace rehearse::real
