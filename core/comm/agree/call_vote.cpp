// SPDX-License-Identifier: BSD-3-Clause
#include "call_vote.h"

#include <algorithm>
#include <string>
#include <utility>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>

#include "comm/call/fingerprint.h"

namespace rehearse::comm {

void CallVote::add(const MadeCall& call, exec::CallSite where) {
  const auto position = std::lower_bound(calls_.begin(), calls_.end(), call.rank,
                                         [](const Call& each, int rank) { return each.made.rank < rank; });
  REHEARSE_CHECK(position == calls_.end() || position->made.rank != call.rank, call.rank, sequence_);
  calls_.insert(position, {call, std::move(where)});
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

Mismatch CallVote::mismatch() const {
  const auto [vote, calls] = parties();
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
