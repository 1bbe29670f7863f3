// SPDX-License-Identifier: BSD-3-Clause
#include "deadline_queue.h"

#include <iterator>

#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

void DeadlineQueue::add(RankWork& work) {
  REHEARSE_CHECK(!work.by_deadline.is_linked() && work.deadline() != VirtualTime::max(), work.rank(),
                 work.getSequencenumber());
  auto position = works_.end();
  while (position != works_.begin() && std::prev(position)->deadline() > work.deadline()) --position;
  works_.insert(position, work);
  if (armed() && due() <= work.deadline()) return;
  timers_.cancel(*this);
  timers_.arm(*this, work.deadline());
}

// Does not adjust the timer while works remain: at worst it fires early without effect.
void DeadlineQueue::remove(RankWork& work) noexcept {
  REHEARSE_CHECK(work.by_deadline.is_linked(), work.rank(), work.getSequencenumber());
  work.by_deadline.unlink();
  if (works_.empty()) timers_.cancel(*this);
}

void DeadlineQueue::clear() noexcept {
  works_.clear();
  timers_.cancel(*this);
}

void DeadlineQueue::fire() {
  while (!works_.empty()) {
    const auto work = c10::intrusive_ptr<RankWork>::reclaim_copy(&works_.front());
    if (work->deadline() > timers_.limit_now(clock_.now())) return timers_.arm(*this, work->deadline());
    auto* const match = work->match();
    REHEARSE_CHECK(match != nullptr, work->rank(), work->getSequencenumber());
    match->expire(*work);
  }
}

}  // namespace rehearse::comm
