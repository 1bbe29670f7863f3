// SPDX-License-Identifier: BSD-3-Clause
#include "collective_matcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {
namespace {

double milliseconds(VirtualTime time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch()).count();
}

CommError monitored_barrier_error(const RankWork& work) {
  return CommError(barrier_given_up_by_rank_0(work.rank()), work.group().name, work.getSequencenumber(),
                   {work.group().global_rank(0)});
}

}  // namespace

void CollectiveFailure::clear() noexcept {
  given_up_ = false;
  timed_out_.clear();
}

void CollectiveFailure::note_timed_out(const RankWork& work, VirtualTime now) {
  if (timed_out_.empty()) since_ = now;
  timed_out_.push_back(work.global_rank());
}

std::exception_ptr CollectiveFailure::error_of(const RankWork& work, const exec::Clock& clock) const {
  REHEARSE_CHECK(any(), work.rank(), work.getSequencenumber());
  if (given_up_) return std::make_exception_ptr(monitored_barrier_error(work));
  return std::make_exception_ptr(
      TimeoutError(fmt::format("{} is over: it timed out on {} at {} ms of {}", title_of(work),
                               describe_ranks(timed_out_), milliseconds(since_), exec::kind_of_time(clock)),
                   work.group().name, work.getSequencenumber(), timed_out_));
}

CollectiveMatcher::CollectiveMatcher(const MatcherContext& context)
    : context_(context), calls_(context.group.ranks.size()) {}

CollectiveSlot& CollectiveMatcher::slot_for(std::uint64_t index) {
  REHEARSE_CHECK(index >= first_open_, index, first_open_);
  const auto offset = index - first_open_;
  REHEARSE_CHECK(offset <= open_.size(), index, first_open_, open_.size());
  if (offset < open_.size()) return *open_[offset];
  if (free_.empty()) {
    slots_.push_back(std::make_unique<CollectiveSlot>(context_, *this));
    free_.push_back(slots_.back().get());
  }
  CollectiveSlot& slot = *free_.back();
  free_.pop_back();
  open_.push_back(&slot);
  slot.open(index + 1);
  return slot;
}

void CollectiveMatcher::join(c10::intrusive_ptr<RankWork> work) {
  CollectiveSlot& slot = slot_for(calls_[static_cast<std::size_t>(work->rank())]++);
  slot.add(std::move(work));
  if (!slot.full()) return;
  open_.pop_front();
  ++first_open_;
  slot.launch();
}

bool CollectiveMatcher::enter(CollectiveSlot& slot) {
  const bool waits = slot.waits_for_prior_work() && (!barriers_.empty() || is_any_under_way_before(slot));
  (waits ? barriers_ : under_way_).push_back(&slot);
  return !waits;
}

bool CollectiveMatcher::is_any_under_way_before(const CollectiveSlot& slot) const noexcept {
  return std::ranges::any_of(under_way_, [&](const auto* other) { return other->sequence() < slot.sequence(); });
}

void CollectiveMatcher::advance() noexcept {
  while (!under_way_.empty() && under_way_.front()->is_carried_out()) {
    auto* const slot = under_way_.front();
    under_way_.pop_front();
    slot->end_in_turn();
  }
  if (barriers_.empty() || is_any_under_way_before(*barriers_.front())) return;
  auto* const barrier = barriers_.front();
  barriers_.pop_front();
  under_way_.push_back(barrier);
  barrier->begin_in_turn();
}

void CollectiveMatcher::leave(CollectiveSlot& slot) noexcept {
  std::erase(under_way_, &slot);
  std::erase(barriers_, &slot);
  advance();
}

void CollectiveMatcher::fail_barriers_after(const RankWork& work, std::uint64_t sequence) {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i]->follow_failure(work, sequence);
}

const RankWork* CollectiveMatcher::first_call_with(int rank) const noexcept {
  const auto offset = calls_[static_cast<std::size_t>(rank)] - first_open_;
  return offset < open_.size() ? open_[offset]->first_call() : nullptr;
}

void CollectiveMatcher::fail_monitored_barrier_of(int rank) {
  slot_for(calls_[static_cast<std::size_t>(rank)]).fail_monitored_barrier();
}

void CollectiveMatcher::give_up_monitored_barrier(const RankWork& work, const TimeoutError& error, bool name_all) {
  const auto offset = work.getSequencenumber() - 1 - first_open_;
  if (offset < open_.size()) open_[offset]->fail_monitored_barrier();
  // The ranks' numbers in the group, as in c10d's text.
  std::vector<int> missing;
  for (int rank = 0; rank < context_.group.size(); ++rank) {
    const auto& gone = error.ranks();
    if (std::ranges::find(gone, context_.group.global_rank(rank)) != gone.end()) missing.push_back(rank);
  }
  if (missing.empty()) throw error;
  throw TimeoutError(given_up_barrier(missing, name_all, work.operation.timeout), context_.group.name,
                     work.getSequencenumber(), error.ranks());
}

void CollectiveMatcher::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  for (const auto& slot : slots_) slot->list_pending(pending, only_of);
}

void CollectiveMatcher::list_in_flight(int rank, Works& works) const {
  for (const auto& slot : slots_) slot->list_in_flight(rank, works);
}

void CollectiveMatcher::close() noexcept {
  for (const auto& slot : slots_) slot->close();
  open_.clear();
  under_way_.clear();
  barriers_.clear();
}

}  // namespace rehearse::comm
