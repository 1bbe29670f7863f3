// SPDX-License-Identifier: BSD-3-Clause
#include "collective_calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/pairs.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"

namespace rehearse::comm {

void CallVote::add(const MadeCall& call, exec::CallSite where) {
  const auto position = std::lower_bound(calls_.begin(), calls_.end(), call.rank,
                                         [](const Call& each, int rank) { return each.made.rank < rank; });
  REHEARSE_CHECK(position == calls_.end() || position->made.rank != call.rank, call.rank, sequence_);
  for (const auto& [other, place] : calls_) {
    if (agree(call, other) && exchange_difference(call, other, group_))
      exchanges_.insert(std::minmax(call.rank, +other.rank));
  }
  calls_.insert(position, {call, std::move(where)});
}

const CallVote::Call& CallVote::call_of(int rank) const {
  return *std::ranges::find_if(calls_, [rank](const Call& call) { return call.made.rank == rank; });
}

std::vector<int> CallVote::disagreeing_ranks(int rank) const {
  const auto [vote, calls] = parties();
  if (vote.parties() > 1) return vote.disagreeing_ranks(rank);
  std::set<int> own, all;
  for (const auto& [low, high] : exchanges_) {
    const int one = group_.global_rank(low), other = group_.global_rank(high);
    all.insert({one, other});
    if (one == rank) own.insert(other);
    if (other == rank) own.insert(one);
  }
  const auto& ranks = own.empty() ? all : own;
  return {ranks.begin(), ranks.end()};
}

CallVote::Parties CallVote::parties() const {
  Parties parties{Vote(group_.ranks.size()), {}};
  std::vector<MadeCall> samples;  // one call of each party, with a payload name if any call of the party has one
  for (const auto& [call, where] : calls_) {
    const auto same = [&own = call](const MadeCall& other) { return agree(other, own); };
    const auto sample = std::ranges::find_if(samples, same);
    const auto party = static_cast<std::size_t>(sample - samples.begin());
    if (sample == samples.end()) {
      samples.push_back(call);
    } else if (sample->operation->payload == nullptr) {
      *sample = call;
    }
    parties.vote.cast(party, group_.global_rank(call.rank), [&place = where] { return place; });
  }
  for (const auto& sample : samples) parties.calls.push_back(sample.operation);
  return parties;
}

Mismatch CallVote::mismatch_of_exchange() const {
  REHEARSE_CHECK(!exchanges_.empty(), sequence_, calls_.size());
  std::map<int, std::size_t> times;
  for (const auto& [one, other] : exchanges_) ++times[one], ++times[other];
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [culprit, most] = *std::ranges::max_element(times, fewer);
  const bool is_one = std::ranges::count_if(times, [m = most](const auto& each) { return each.second == m; }) == 1;
  const auto pair = std::ranges::find_if(
      exchanges_, [c = culprit, is_one](const auto& each) { return !is_one || each.first == c || each.second == c; });
  const auto &one = call_of(pair->first), &other = call_of(pair->second);
  auto mismatch = mismatch_of_two({one.made, one.where}, {other.made, other.where},
                                  *exchange_difference(one.made, other.made, group_), group_);
  if (!is_one) return mismatch;
  mismatch.has_majority = true;
  if (mismatch.first.rank == group_.global_rank(culprit)) {
    std::swap(mismatch.first, mismatch.second);
    std::swap(mismatch.fields.front().first, mismatch.fields.front().second);
  }
  auto& alike = mismatch.first.alike = {};
  for (const auto& [call, where] : calls_) {
    if (call.rank != culprit && fingerprint_text(*call.operation) == mismatch.first.fingerprint)
      alike.push_back(group_.global_rank(call.rank));
  }
  return mismatch;
}

Mismatch CallVote::mismatch() const {
  const auto [vote, calls] = parties();
  if (vote.parties() < 2) return mismatch_of_exchange();
  const auto order = vote.in_order();
  auto mismatch = vote.mismatch_of(order, [&](std::size_t party) { return fingerprint_text(*calls[party]); });
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name;
  mismatch.sequence = sequence_;
  const auto& first = *calls[order.front()];
  for (std::size_t i = 1; i < order.size(); ++i) {
    for (auto& field : differences(first, *calls[order[i]])) add_difference(mismatch.fields, std::move(field));
  }
  return mismatch;
}

CollectiveCalls::CollectiveCalls(const GroupIdentity& group) : group_(group), calls_(group.ranks.size()) {}

void CollectiveCalls::open(std::uint64_t sequence) noexcept {
  std::ranges::fill(calls_, nullptr);
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
    const auto next = std::ranges::find_if(calls_, is_there);
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
