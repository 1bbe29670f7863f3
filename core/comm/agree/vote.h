// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/mismatch.h>

namespace rehearse::comm {

// Which ranks have made which of several calls that should be the same. A party is the ranks that made one of them,
// numbered in the order in which they came up. What is told depends on who came, not on the order in which they came.
class Vote {
 public:
  // `ranks`: how many will come at most.
  explicit Vote(std::size_t ranks) : ranks_(ranks) {}

  // A rank (of the world) has come. `party`: its number, that of a new one is the next.
  void take_side(std::size_t party, int rank, exec::CallSite where);

  bool all_have_come() const noexcept { return arrived_ >= ranks_; }

  // The ranks (of the world) that made another call than `rank`, ascending.
  std::vector<int> opponents(int rank) const;

  // The parties: first the majority, if there is one, then by their lowest rank.
  std::vector<std::size_t> in_order() const;

  // With the text of each party's call, a mismatch but for its place and the fields that differ. Two parties at least.
  Mismatch mismatch_of(const std::vector<std::size_t>& order, const std::vector<std::string>& texts) const;

 private:
  struct Party {
    std::vector<int> ranks;  // of the world, ascending
    exec::CallSite where;    // of the first of them
  };

  bool has_majority(std::size_t party) const { return parties_[party].ranks.size() * 2 > ranks_; }

  const std::size_t ranks_;
  std::vector<Party> parties_;
  std::size_t arrived_ = 0;
};

}  // namespace rehearse::comm
