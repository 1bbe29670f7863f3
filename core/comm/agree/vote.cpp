// SPDX-License-Identifier: BSD-3-Clause
#include "vote.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

bool Vote::Party::has(int rank) const noexcept { return std::ranges::binary_search(ranks, rank); }

void Vote::cast(std::size_t party, int rank, c10::function_ref<exec::CallSite()> where) {
  REHEARSE_CHECK(party <= parties_.size() && arrived_ < ranks_ && !has(rank), party, parties_.size(), rank, arrived_);
  if (party == parties_.size()) parties_.emplace_back();
  auto& [ranks, place] = parties_[party];
  const auto before = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (before == ranks.begin()) place = where();
  ranks.insert(before, rank);
  ++arrived_;
}

bool Vote::has(int rank) const noexcept {
  return std::ranges::any_of(parties_, [rank](const Party& party) { return party.has(rank); });
}

const exec::CallSite& Vote::where() const {
  REHEARSE_CHECK(!parties_.empty(), ranks_);
  const auto lowest = [](const Party& a, const Party& b) { return a.ranks.front() < b.ranks.front(); };
  return std::ranges::min_element(parties_, lowest)->where;
}

std::vector<int> Vote::disagreeing_ranks(int rank) const {
  std::vector<int> others;
  for (const auto& party : parties_) {
    if (party.has(rank)) continue;
    others.insert(others.end(), party.ranks.begin(), party.ranks.end());
  }
  std::ranges::sort(others);
  return others;
}

std::vector<std::size_t> Vote::in_order() const {
  std::vector<std::size_t> order(parties_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [this](std::size_t a, std::size_t b) {
    if (has_majority(a) != has_majority(b)) return has_majority(a);
    return parties_[a].ranks.front() < parties_[b].ranks.front();
  });
  return order;
}

Mismatch Vote::mismatch_of(const std::vector<std::size_t>& order,
                           c10::function_ref<std::string(std::size_t)> text) const {
  REHEARSE_CHECK(order.size() >= 2 && order.size() == parties_.size(), order.size(), parties_.size());
  const auto side_of = [&](std::size_t party) {
    const auto& [ranks, where] = parties_[party];
    return Mismatch::Side{ranks.front(), text(party), where, ranks};
  };
  Mismatch mismatch;
  mismatch.has_majority = has_majority(order[0]);
  mismatch.first = side_of(order[0]);
  mismatch.second = side_of(order[1]);
  for (std::size_t i = 2; i < order.size(); ++i) mismatch.others.push_back(side_of(order[i]));
  return mismatch;
}

void add_difference(std::vector<Mismatch::Field>& fields, Mismatch::Field field) {
  const auto known = std::ranges::find_if(fields, [&](const auto& each) { return each.name == field.name; });
  if (known == fields.end()) {
    fields.push_back(std::move(field));
    return;
  }
  auto& others = known->others;
  if (field.second == known->second || std::ranges::find(others, field.second) != others.end()) return;
  others.push_back(std::move(field.second));
}

}  // namespace rehearse::comm
