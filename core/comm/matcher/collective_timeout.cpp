// SPDX-License-Identifier: BSD-3-Clause
// The end of a collective that exceeds a time limit, because some ranks do not call it in time or because the transfer
// takes too long. When the first rank reaches its time limit, the collective can no longer succeed, and no tensor is
// written. Ranks that wait go on waiting until their own limits, or until all ranks have arrived. Ranks that arrive
// later fail at once.
#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "collective_matcher.h"

namespace rehearse::comm {
// Keeps the earliest deadline; later calls usually have later deadlines.
void CollectiveSlot::watch(VirtualTime deadline) {
  auto& timers = services_.timers();
  if (armed()) {
    if (due() <= deadline) return;
    timers.cancel(*this);
  }
  timers.arm(*this, deadline);
}

void CollectiveSlot::fire() {
  const auto now = services_.limit_now();
  auto next = VirtualTime::max();
  for (const auto& work : works_) {
    if (work == nullptr || !work->incomplete()) continue;
    if (work->deadline() <= now) {
      expire(*work);
    } else {
      next = std::min(next, work->deadline());
    }
  }
  if (failure_.any() && full()) return end_in_failure();
  if (next != VirtualTime::max()) watch(next);
}

void CollectiveSlot::expire(RankWork& work) {
  work.time_out();  // first, because the barriers after it fail with the same error
  failure_.note_timed_out(work, services_.now());
  matcher_.fail_barriers_after(work, sequence_);
}

void CollectiveSlot::follow_failure(const RankWork& prior, std::uint64_t sequence) {
  if (state_ == State::free || sequence_ <= sequence || calls_.arrived() == 0 || !waits_for_prior_work()) return;
  const auto work = works_[static_cast<std::size_t>(prior.rank())];
  if (work == nullptr || !work->incomplete()) return;
  if (prior.timed_out()) {
    work->time_out(prior.failure());
  } else {
    work->fail(prior.failure());
  }
  failure_.note_timed_out(*work, services_.now());
  if (full()) end_in_failure();
}

// All ranks have arrived at a collective that has failed: the remaining calls fail.
void CollectiveSlot::end_in_failure() {
  REHEARSE_CHECK(full() && failure_.any(), sequence_, calls_.arrived(), works_.size(), state_);
  if (state_ == State::launched) services_.fabric.cancel(*this);
  for (const auto& work : works_) {
    if (!work->incomplete()) continue;
    fail(*work);
    matcher_.fail_barriers_after(*work, sequence_);
  }
  const bool was_under_way = is_under_way();
  give_back();
  if (was_under_way) matcher_.leave(*this);
}

void CollectiveSlot::fail_monitored_barrier() {
  if (calls_.arrived() > 0 && !is_monitored_barrier(first().operation)) return;
  failure_.note_given_up();
  for (const auto& work : works_) {
    if (work != nullptr && work->incomplete()) fail(*work);
  }
}

void CollectiveSlot::fail(RankWork& work) const { work.fail(failure_.error_of(work, services_.clock)); }

}  // namespace rehearse::comm
