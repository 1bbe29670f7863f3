// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/FunctionRef.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/mismatch.h>

namespace rehearse::comm {

// After a mismatch, the ranks that have not arrived get this long to make their calls, because they may make a
// majority. Ranks that run the same step arrive within that time, and a run that waited longer would look hung.
inline constexpr VirtualDuration kVotePeriod = std::chrono::seconds(1);

// The first mismatch ends a world, or a job of processes. Later mismatches add nothing.
class FirstMismatch {
 public:
  // Returns true only the first time.
  bool begin() noexcept { return !std::exchange(has_begun_, true); }

 private:
  bool has_begun_ = false;
};

// Collects the calls of ranks that should all make the same call. A party is the ranks that made the same call; parties
// are numbered in the order in which they appear. The result depends on which ranks have arrived, not on their order.
class Vote {
 public:
  // `ranks`: the largest number of ranks that may arrive.
  explicit Vote(std::size_t ranks) : ranks_(ranks) {}

  // Counts the call of `rank`, a rank of the world that has not been counted yet. `party`: the number of its party; a
  // new party has the next number. `where`: returns the place of the call; called only if no lower rank of the party
  // has arrived.
  void cast(std::size_t party, int rank, c10::function_ref<exec::CallSite()> where);

  bool all_have_come() const noexcept { return arrived_ == ranks_; }
  std::size_t parties() const noexcept { return parties_.size(); }
  bool has(int rank) const noexcept;

  // The place of the call of the lowest rank that has arrived.
  const exec::CallSite& where() const;

  // The ranks of the world that made another call than `rank`, ascending.
  std::vector<int> disagreeing_ranks(int rank) const;

  // All parties: first the majority, if there is one, then the other parties by their lowest rank.
  std::vector<std::size_t> in_order() const;

  // Makes a mismatch, but leaves its kind, group, sequence and fields to the caller. `order`: in_order(); at least two
  // parties. `text`: returns the text of a party's call.
  Mismatch mismatch_of(const std::vector<std::size_t>& order, c10::function_ref<std::string(std::size_t)> text) const;

 private:
  struct Party {
    std::vector<int> ranks;  // ranks of the world, ascending
    exec::CallSite where;    // of the call of the first of these ranks
    bool has(int rank) const noexcept;
  };

  bool has_majority(std::size_t party) const { return parties_[party].ranks.size() * 2 > ranks_; }

  std::size_t ranks_;
  std::vector<Party> parties_;
  std::size_t arrived_ = 0;
};

// Adds a field in which a party's call differs from the first party's. If an earlier party already differs in this
// field, adds only the new value.
void add_difference(std::vector<Mismatch::Field>& fields, Mismatch::Field field);

}  // namespace rehearse::comm
