// SPDX-License-Identifier: BSD-3-Clause
#include "collective_matcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

CollectiveMatcher::CollectiveMatcher(const MatcherContext& context)
    : context_(context), calls_(context.group.ranks.size()) {}

CollectiveSlot& CollectiveMatcher::slot_for(std::uint64_t index) {
  REHEARSE_CHECK(index >= first_open_, index, first_open_);
  const auto place = index - first_open_;
  REHEARSE_CHECK(place <= open_.size(), index, first_open_, open_.size());
  if (place < open_.size()) return *open_[place];
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

std::size_t CollectiveMatcher::begin(CollectiveSlot& slot, bool is_barrier) {
  const auto prior = under_way_++;
  if (is_barrier && prior > 0) in_turn_.push_back(&slot);
  return is_barrier ? prior : 0;
}

void CollectiveMatcher::end(std::uint64_t sequence) {
  REHEARSE_CHECK(under_way_ > 0, sequence);
  --under_way_;
  if (in_turn_.empty()) return;
  // One at most: a barrier waits for those before it, too.
  CollectiveSlot* next = nullptr;
  for (auto* const slot : in_turn_) {
    if (slot->came_to_its_turn(sequence)) next = slot;
  }
  if (next == nullptr) return;
  std::erase(in_turn_, next);
  next->start_in_turn();
}

void CollectiveMatcher::fail_barriers_after(const RankWork& work, std::uint64_t sequence) {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i]->follow_failure(work, sequence);
}

void CollectiveMatcher::fail_monitored_barrier_of(int rank) {
  slot_for(calls_[static_cast<std::size_t>(rank)]).fail_monitored_barrier();
}

void CollectiveMatcher::give_up_monitored_barrier(const RankWork& work, const TimeoutError& error, bool name_all) {
  const auto place = work.getSequencenumber() - 1 - first_open_;
  if (place < open_.size()) open_[place]->fail_monitored_barrier();
  // Ranks of the group, as in c10d's text.
  std::vector<int> missing;
  for (int rank = 0; rank < context_.group.size(); ++rank) {
    const auto& gone = error.ranks();
    if (std::find(gone.begin(), gone.end(), context_.group.global_rank(rank)) != gone.end()) missing.push_back(rank);
  }
  if (missing.empty()) throw error;
  if (!name_all) missing.resize(1);
  throw TimeoutError(fmt::format("[Rank 0]: Rank{} {} failed to pass monitoredBarrier in {} ms", name_all ? "s" : "",
                                 fmt::join(missing, ", "), work.operation.timeout.count()),
                     context_.group.name, work.getSequencenumber(), error.ranks());
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
  in_turn_.clear();
}

}  // namespace rehearse::comm
