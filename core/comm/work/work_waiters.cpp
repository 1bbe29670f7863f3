// SPDX-License-Identifier: BSD-3-Clause
#include "work_waiters.h"

#include <utility>

#include <c10/util/ScopeExit.h>

namespace rehearse::comm {

auto WorkWaiters::wait(c10::function_ref<bool()> over, const exec::Clock& clock, std::optional<VirtualTime> limit,
                       const exec::Observer& waiting) -> Ended {
  // Another fiber of the rank may wait for the same work, and longer.
  const auto no_longer = c10::make_scope_exit([&]() noexcept {
    if (waiting_ == &waiting) waiting_ = nullptr;
  });
  waiting_ = &waiting;
  while (!over()) {
    if (std::exchange(aborted_, false)) return Ended::aborted;
    const auto result = queue_.wait(waiting, limit);
    if (result == exec::WaitResult::notified || over() || clock.now() < *limit) continue;
    return Ended::out_of_time;
  }
  return Ended::over;
}

void WorkWaiters::abort() {
  aborted_ = true;
  notify_all();
}

}  // namespace rehearse::comm
