// SPDX-License-Identifier: BSD-3-Clause
#include "deadline_queue.h"

#include <iterator>

#include "comm/group/group_state.h"

namespace rehearse::comm {

void DeadlineQueue::add(RankWork& work, exec::TimerQueue& timers) {
  auto place = works_.end();
  while (place != works_.begin() && std::prev(place)->deadline() > work.deadline()) --place;
  works_.insert(place, work);
  if (armed() && due() <= work.deadline()) return;
  timers.cancel(*this);
  timers.arm(*this, work.deadline());
}

// Where others are left the timer stays as it is: at worst it fires too early, and for nothing.
void DeadlineQueue::remove(RankWork& work, exec::TimerQueue& timers) noexcept {
  work.by_deadline.unlink();
  if (works_.empty()) timers.cancel(*this);
}

void DeadlineQueue::clear(exec::TimerQueue& timers) noexcept {
  works_.clear();
  timers.cancel(*this);
}

void DeadlineQueue::fire() {
  while (!works_.empty()) {
    const auto work = c10::intrusive_ptr<RankWork>::reclaim_copy(&works_.front());
    auto& world = work->group().world();
    if (work->deadline() > world.now()) return world.executor().timers().arm(*this, work->deadline());
    work->expire();
  }
}

}  // namespace rehearse::comm
