// SPDX-License-Identifier: BSD-3-Clause
#include "collective_calls.h"

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "comm/agree/pairs.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"

namespace rehearse::comm {

CollectiveCalls::CollectiveCalls(const GroupIdentity& group) : group_(group), calls_(group.ranks.size()) {}

void CollectiveCalls::open(std::uint64_t sequence) noexcept {
  std::fill(calls_.begin(), calls_.end(), nullptr);
  sequence_ = sequence;
  arrived_ = 0;
  first_ = -1;
  payload_ = nullptr;
  vote_.reset();
}

bool CollectiveCalls::add(const MadeCall& call, Places places) {
  REHEARSE_CHECK(call.sequence == sequence_ && !has(call.rank), call.sequence, sequence_, call.rank);
  const bool is_first = first_ < 0;
  if (is_first) fingerprint_ = call.fingerprint;
  const bool exchanges = is_alltoall(call.operation->type) || !call.operation->parts.empty();
  if (!fit() || !agrees(call) || (exchanges && !exchanges_fit(call))) [[unlikely]] {
    cast(call, places);
  } else if (payload_ == nullptr) {
    payload_ = call.operation->payload;
  }
  if (is_first) first_ = call.rank;
  calls_[static_cast<std::size_t>(call.rank)] = call.operation;
  ++arrived_;
  return fit();
}

bool CollectiveCalls::agrees(const MadeCall& call) const noexcept {
  const auto* const payload = call.operation->payload;
  return call.fingerprint == fingerprint_ && (payload == nullptr || payload_ == nullptr || payload == payload_);
}

void CollectiveCalls::withdraw(int rank) noexcept {
  REHEARSE_CHECK(has(rank) && arrived_ > 0, rank, arrived_);
  calls_[static_cast<std::size_t>(rank)] = nullptr;
  --arrived_;
  const auto is_there = [](const Operation* call) { return call != nullptr; };
  if (first_ == rank) {
    const auto next = std::find_if(calls_.begin(), calls_.end(), is_there);
    first_ = next != calls_.end() ? static_cast<int>(next - calls_.begin()) : -1;
  }
  payload_ = nullptr;
  for (const auto* const call : calls_) {
    if (call != nullptr && payload_ == nullptr) payload_ = call->payload;
  }
}

MadeCall CollectiveCalls::call_of(std::size_t rank) const noexcept {
  return {static_cast<int>(rank), sequence_, calls_[rank], fingerprint_};
}

void CollectiveCalls::cast(const MadeCall& call, Places places) {
  if (vote_ == nullptr) {
    vote_ = std::make_unique<CallVote>(group_, sequence_);
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      if (calls_[rank] != nullptr) vote_->add(call_of(rank), places(static_cast<int>(rank)));
    }
  }
  vote_->add(call, places(call.rank));
}

bool CollectiveCalls::exchanges_fit(const MadeCall& call) {
  const auto& operation = *call.operation;
  // The usual all-to-all has equal splits everywhere, so its n * n edges need no check.
  const auto split = is_alltoall(operation.type) ? even_split(operation) : -1;
  if (arrived_ == 0) even_split_ = split;
  if (split != even_split_) even_split_ = -1;
  for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
    if (calls_[rank] == nullptr) continue;
    if (exchange_difference(call, call_of(rank), group_)) return false;
    if (even_split_ >= 0 && has_elements(call_of(rank))) break;  // the other calls have the same format as this call
  }
  return true;
}

Mismatch CollectiveCalls::mismatch() const {
  REHEARSE_CHECK(!fit(), sequence_);
  return vote_->mismatch();
}

std::string CollectiveCalls::describe(std::string_view title) const {
  return fit() ? waiting_for_ranks(title, arrived_, calls_.size()) : disagreeing(title);
}

std::vector<int> CollectiveCalls::waits_for(int rank) const {
  if (!fit()) return vote_->disagreeing_ranks(group_.global_rank(rank));
  std::vector<int> others;
  for (std::size_t other = 0; other < calls_.size(); ++other) {
    if (calls_[other] == nullptr) others.push_back(group_.global_rank(static_cast<int>(other)));
  }
  return others;
}

}  // namespace rehearse::comm
