// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace rehearse {

// Time inside a world. It starts at zero. In a simulation, only the executor advances it, and it never depends on the
// machine's clocks. In a real run, it is the machine's time since the start. It has its own clock type, so that it
// cannot be mixed up with std::chrono::steady_clock.
struct VirtualClockTag {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<VirtualClockTag>;
  static constexpr bool is_steady = true;
};

using VirtualTime = VirtualClockTag::time_point;
using VirtualDuration = VirtualClockTag::duration;

inline constexpr VirtualTime kTimeZero{};

// Returns the time that is `by` after `time`. If that is beyond the end of virtual time (292 years), returns
// VirtualTime::max(), which never comes.
template <class Rep, class Period>
constexpr VirtualTime later(VirtualTime time, std::chrono::duration<Rep, Period> by) noexcept {
  const auto left = std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(VirtualTime::max() - time);
  return by >= left ? VirtualTime::max() : time + by;
}

}  // namespace rehearse
