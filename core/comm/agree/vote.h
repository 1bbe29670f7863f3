// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <c10/util/FunctionRef.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/mismatch.h>

namespace rehearse::comm {

// Which ranks have made which of several calls that should be the same. A party is the ranks that made one of them,
// numbered in the order in which they came up. What is told depends on who came, not on the order in which they came.
class Vote {
 public:
  // `ranks`: how many will come at most.
  explicit Vote(std::size_t ranks) : ranks_(ranks) {}

  // A rank (of the world) has come for the first time. `party`: its number, that of a new one is the next. `where`: of
  // its call; asked if no lower rank of the party has come.
  void cast(std::size_t party, int rank, c10::function_ref<exec::CallSite()> where);

  bool all_have_come() const noexcept { return arrived_ == ranks_; }
  std::size_t parties() const noexcept { return parties_.size(); }
  bool has(int rank) const noexcept;

  // The lowest rank that has come; its call's place.
  const exec::CallSite& where() const;

  // The ranks (of the world) that made another call than `rank`, ascending.
  std::vector<int> disagreeing_ranks(int rank) const;

  // The parties: first the majority, if there is one, then by their lowest rank.
  std::vector<std::size_t> in_order() const;

  // A mismatch but for its place and the fields that differ. `order`: in_order(); two parties at least. `text`: of a
  // party's call.
  Mismatch mismatch_of(const std::vector<std::size_t>& order, c10::function_ref<std::string(std::size_t)> text) const;

 private:
  struct Party {
    std::vector<int> ranks;  // of the world, ascending
    exec::CallSite where;    // of the first of them
    bool has(int rank) const noexcept;
  };

  bool has_majority(std::size_t party) const { return parties_[party].ranks.size() * 2 > ranks_; }

  std::size_t ranks_;
  std::vector<Party> parties_;
  std::size_t arrived_ = 0;
};

// A party's call differs in that field from the first party's; so may those of parties before it.
void add_difference(std::vector<Mismatch::Field>& fields, Mismatch::Field field);

}  // namespace rehearse::comm
