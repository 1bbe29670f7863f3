// SPDX-License-Identifier: BSD-3-Clause
#include "creation_dispute.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::comm {

std::string members_text(std::span<const int> ranks) { return fmt::format("{{{}}}", fmt::join(ranks, ", ")); }

void CreationDispute::add(int rank, std::span<const int> members, std::string_view name, exec::CallSite where) {
  Call call{{members.begin(), members.end()}, std::string(name)};
  const auto party = static_cast<std::size_t>(std::find(calls_.begin(), calls_.end(), call) - calls_.begin());
  if (party == calls_.size()) calls_.push_back(std::move(call));
  take_side(party, rank, std::move(where));
}

Mismatch CreationDispute::mismatch() const {
  std::vector<std::string> texts;
  for (const auto& call : calls_) {
    texts.push_back(members_text(call.members) + (call.name.empty() ? "" : fmt::format(" \"{}\"", call.name)));
  }
  const auto order = in_order();
  const auto& first = calls_[order[0]];
  const auto& second = calls_[order[1]];
  auto mismatch = mismatch_of(order, texts);
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

std::string CreationObserver::describe() const { return call() + " (its ranks disagree)"; }

std::string CreationObserver::call() const { return fmt::format("new_group #{}", index_); }

}  // namespace rehearse::comm
