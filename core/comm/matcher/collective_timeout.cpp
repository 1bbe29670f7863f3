// SPDX-License-Identifier: BSD-3-Clause
// How a collective ends that not all ranks reach in time. It is over for all of them when the time of the first is: who
// waits goes on waiting until its own time is over, who comes later fails at once, and nobody's tensors are written.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "collective_matcher.h"

namespace rehearse::comm {
namespace {

double milliseconds(VirtualTime time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch()).count();
}

}  // namespace

// The earliest deadline: those of later calls come later, as a rule.
void CollectiveSlot::watch(VirtualTime deadline) {
  auto& timers = services_.timers();
  if (armed()) {
    if (due() <= deadline) return;
    timers.cancel(*this);
  }
  timers.arm(*this, deadline);
}

void CollectiveSlot::fire() {
  const auto now = services_.now();
  auto next = VirtualTime::max();
  for (const auto& work : works_) {
    if (work == nullptr || !work->incomplete()) continue;
    if (work->deadline() <= now) {
      expire(*work);
    } else {
      next = std::min(next, work->deadline());
    }
  }
  if (over() && full()) return end_in_failure();
  if (next != VirtualTime::max()) watch(next);
}

void CollectiveSlot::expire(RankWork& work) {
  work.time_out();  // before it is noted: the text says who is missing
  note_timed_out(work);
  matcher_.fail_barriers_after(work, sequence_);
}

void CollectiveSlot::note_timed_out(const RankWork& work) {
  if (timed_out_.empty()) over_at_ = services_.now();
  timed_out_.push_back(work.global_rank());
}

void CollectiveSlot::follow_failure(const RankWork& prior, std::uint64_t sequence) {
  if (state_ == State::free || sequence_ <= sequence || first_ == nullptr || !waits_for_prior_work()) return;
  const auto work = works_[static_cast<std::size_t>(prior.rank())];
  if (work == nullptr || !work->incomplete()) return;
  if (prior.timed_out()) {
    work->time_out(prior.exception());
  } else {
    work->fail(prior.exception());
  }
  note_timed_out(*work);
  if (full()) end_in_failure();
}

// All ranks have come, and at least one has gone: what is left of the collective fails.
void CollectiveSlot::end_in_failure() {
  const bool was_launched = state_ == State::launched;
  if (was_launched) {
    services_.fabric.cancel(*this);
    matcher_.end_before_its_turn(*this);
  }
  for (const auto& work : works_) {
    if (!work->incomplete()) continue;
    fail(*work);
    matcher_.fail_barriers_after(*work, sequence_);
  }
  const auto sequence = sequence_;
  give_back();
  if (was_launched) matcher_.end(sequence);
}

void CollectiveSlot::fail_monitored_barrier() {
  if (first_ != nullptr && name_of(first_->operation) != "monitored_barrier") return;
  failed_ = true;
  for (const auto& work : works_) {
    if (work != nullptr && work->incomplete()) fail(*work);
  }
}

void CollectiveSlot::fail(RankWork& work) const {
  work.fail(failed_ ? monitored_barrier_error(work) : time_is_over_error(work));
}

std::exception_ptr CollectiveSlot::monitored_barrier_error(const RankWork& work) const {
  return std::make_exception_ptr(CommError(
      fmt::format("Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
                  "rank 0. Please check rank 0 logs for faulty rank.",
                  work.rank()),
      group_.name, sequence_, {group_.global_rank(0)}));
}

std::exception_ptr CollectiveSlot::time_is_over_error(const RankWork& work) const {
  return std::make_exception_ptr(
      TimeoutError(fmt::format("{} is over: it timed out on {} at {} ms of {}", title_of(work),
                               describe_ranks(timed_out_), milliseconds(over_at_), exec::kind_of_time(services_.clock)),
                   group_.name, sequence_, timed_out_));
}

}  // namespace rehearse::comm
