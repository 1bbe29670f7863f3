// SPDX-License-Identifier: BSD-3-Clause
#include "vote.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

void Vote::take_side(std::size_t party, int rank, exec::CallSite where) {
  REHEARSE_CHECK(party <= parties_.size(), party, parties_.size());
  if (party == parties_.size()) parties_.emplace_back();
  auto& [ranks, place] = parties_[party];
  const auto before = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (before == ranks.begin()) place = std::move(where);
  ranks.insert(before, rank);
  ++arrived_;
}

std::vector<int> Vote::opponents(int rank) const {
  std::vector<int> others;
  for (const auto& party : parties_) {
    if (std::binary_search(party.ranks.begin(), party.ranks.end(), rank)) continue;
    others.insert(others.end(), party.ranks.begin(), party.ranks.end());
  }
  std::sort(others.begin(), others.end());
  return others;
}

std::vector<std::size_t> Vote::in_order() const {
  std::vector<std::size_t> order(parties_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    if (has_majority(a) != has_majority(b)) return has_majority(a);
    return parties_[a].ranks.front() < parties_[b].ranks.front();
  });
  return order;
}

Mismatch Vote::mismatch_of(const std::vector<std::size_t>& order, const std::vector<std::string>& texts) const {
  REHEARSE_CHECK(order.size() >= 2 && order.size() == texts.size(), order.size(), texts.size());
  const auto side_of = [&](std::size_t party) {
    const auto& [ranks, where] = parties_[party];
    return Mismatch::Side{ranks.front(), texts[party], where, ranks};
  };
  Mismatch mismatch;
  mismatch.has_majority = has_majority(order[0]);
  mismatch.first = side_of(order[0]);
  mismatch.second = side_of(order[1]);
  for (std::size_t i = 2; i < order.size(); ++i) mismatch.others.push_back(side_of(order[i]));
  return mismatch;
}

}  // namespace rehearse::comm
