// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace rehearse {

// Time inside a world. It starts at zero, only the executor advances it, and it never depends on the wall clock. It has
// its own clock type, so that it cannot be mixed up with std::chrono::steady_clock.
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

}  // namespace rehearse
