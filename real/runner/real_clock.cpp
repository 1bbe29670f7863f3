// SPDX-License-Identifier: BSD-3-Clause
#include "real_clock.h"

#include <algorithm>
#include <thread>

namespace rehearse::real {

void RealClock::advance_to(VirtualTime time) noexcept {
  const auto left = time - now();
  if (left > VirtualDuration::zero()) std::this_thread::sleep_for(std::min(left, kSleepMax));
}

}  // namespace rehearse::real
