// SPDX-License-Identifier: BSD-3-Clause
#include "votes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/comm/title.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {

void CallVote::add(const MadeCall& call, exec::CallSite where) {
  const auto same = [&](const MadeCall& other) { return agree(other, call); };
  const auto party = static_cast<std::size_t>(std::find_if(calls_.begin(), calls_.end(), same) - calls_.begin());
  if (party == calls_.size()) calls_.push_back(call);
  vote_.take_side(party, group_.global_rank(call.rank), std::move(where));
}

Mismatch CallVote::mismatch() const {
  std::vector<std::string> texts;
  for (const auto& call : calls_) texts.push_back(side_of(*call.operation, call.rank, group_, {}).fingerprint);
  const auto order = vote_.in_order();
  auto mismatch = vote_.mismatch_of(order, texts);
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name;
  mismatch.sequence = sequence_;
  mismatch.fields = differences(*calls_[order[0]].operation, *calls_[order[1]].operation);
  return mismatch;
}

void CreationVote::add(int rank, std::span<const int> members, std::string_view name, exec::CallSite where) {
  Call call{{members.begin(), members.end()}, std::string(name)};
  const auto party = static_cast<std::size_t>(std::find(calls_.begin(), calls_.end(), call) - calls_.begin());
  if (party == calls_.size()) calls_.push_back(std::move(call));
  vote_.take_side(party, rank, std::move(where));
}

Mismatch CreationVote::mismatch() const {
  std::vector<std::string> texts;
  for (const auto& call : calls_) {
    texts.push_back(members_text(call.members) + (call.name.empty() ? "" : fmt::format(" \"{}\"", call.name)));
  }
  const auto order = vote_.in_order();
  const auto& first = calls_[order[0]];
  const auto& second = calls_[order[1]];
  auto mismatch = vote_.mismatch_of(order, texts);
  mismatch.kind = Mismatch::Kind::new_group;
  mismatch.group = first.name;
  mismatch.sequence = index_;
  if (first.members != second.members) {
    mismatch.fields.push_back({"ranks", members_text(first.members), members_text(second.members)});
  }
  const auto or_none = [](const std::string& name) { return name.empty() ? std::string("none") : name; };
  if (first.name != second.name) mismatch.fields.push_back({"name", or_none(first.name), or_none(second.name)});
  return mismatch;
}

}  // namespace rehearse::comm
