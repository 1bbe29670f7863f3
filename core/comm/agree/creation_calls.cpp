// SPDX-License-Identifier: BSD-3-Clause
#include "creation_calls.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {

bool CreationCalls::Call::is(std::span<const int> others, std::string_view other_name) const noexcept {
  return name == other_name && std::ranges::equal(others, members);
}

bool CreationCalls::fits(std::span<const int> members, std::string_view name) const noexcept {
  return calls_.empty() || (fit() && calls_.front().is(members, name));
}

bool CreationCalls::is_first(std::span<const int> members, std::string_view name) const noexcept {
  return calls_.front().is(members, name);
}

void CreationCalls::add(int rank, std::span<const int> members, std::string_view name,
                        c10::function_ref<exec::CallSite()> where) {
  const auto same = [&](const Call& call) { return call.is(members, name); };
  const auto party = static_cast<std::size_t>(std::ranges::find_if(calls_, same) - calls_.begin());
  if (party == calls_.size()) calls_.push_back({{members.begin(), members.end()}, std::string(name)});
  vote_.cast(party, rank, where);
}

std::vector<int> CreationCalls::called_by(std::span<const int> of) const {
  std::vector<int> ranks;
  std::copy_if(of.begin(), of.end(), std::back_inserter(ranks), [this](int rank) { return vote_.has(rank); });
  return ranks;
}

std::vector<int> CreationCalls::missing(std::span<const int> of) const {
  std::vector<int> ranks;
  std::copy_if(of.begin(), of.end(), std::back_inserter(ranks), [this](int rank) { return !vote_.has(rank); });
  return ranks;
}

Mismatch CreationCalls::mismatch() const {
  REHEARSE_CHECK(!fit(), index_);
  const auto order = vote_.in_order();
  auto mismatch = vote_.mismatch_of(order, [this](std::size_t party) {
    const auto& [members, name] = calls_[party];
    return members_text(members) + (name.empty() ? "" : fmt::format(" \"{}\"", name));
  });
  mismatch.kind = Mismatch::Kind::new_group;
  mismatch.sequence = index_;
  const auto& first = calls_[order.front()];
  mismatch.group = first.name;
  const auto or_none = [](const std::string& name) { return name.empty() ? std::string("none") : name; };
  const auto note = [&](const char* field, const std::string& one, const std::string& other) {
    if (one != other) add_difference(mismatch.fields, {field, one, other, {}});
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& other = calls_[order[i]];
    note("ranks", members_text(first.members), members_text(other.members));
    note("name", or_none(first.name), or_none(other.name));
  }
  return mismatch;
}

}  // namespace rehearse::comm
