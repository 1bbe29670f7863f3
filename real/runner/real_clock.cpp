// SPDX-License-Identifier: BSD-3-Clause
#include "real_clock.h"

#include <algorithm>

namespace rehearse::real {

void RealClock::advance_to(VirtualTime time) noexcept {
  const auto left = time - now();
  if (left > VirtualDuration::zero()) exec::machine_sleep(std::min(left, kSleepMax));
}

}  // namespace rehearse::real
