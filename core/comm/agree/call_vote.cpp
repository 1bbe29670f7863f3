// SPDX-License-Identifier: BSD-3-Clause
#include "call_vote.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/pairs.h"
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
  return *std::find_if(calls_.begin(), calls_.end(), [rank](const Call& call) { return call.made.rank == rank; });
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
    const auto sample = std::find_if(samples.begin(), samples.end(), same);
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
  const auto [culprit, most] = *std::max_element(times.begin(), times.end(), fewer);
  const bool is_one =
      std::count_if(times.begin(), times.end(), [m = most](const auto& each) { return each.second == m; }) == 1;
  const auto pair = std::find_if(exchanges_.begin(), exchanges_.end(), [c = culprit, is_one](const auto& each) {
    return !is_one || each.first == c || each.second == c;
  });
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

}  // namespace rehearse::comm
