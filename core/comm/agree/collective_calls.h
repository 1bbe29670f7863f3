// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/FunctionRef.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/call_vote.h"
#include "comm/agree/made_call.h"

namespace rehearse::comm {

// One collective of a group, as far as its ranks have called it: who is missing, and whether the calls fit each other.
// Two things can keep them from fitting. Calls differ in what all ranks must agree on: then ranks take sides, and who
// comes later may make a majority. Or what one rank sends to another is not what that one expects: that is between two
// ranks, and nobody else can add to it.
//
// Ranks are ranks within the group unless said otherwise. One object serves one collective after the other.
class CollectiveCalls {
 public:
  // Where a rank made its call, which is there or just added. Asked for reports alone.
  using Places = c10::function_ref<exec::CallSite(int rank)>;

  explicit CollectiveCalls(const GroupIdentity& group);

  // Forgets the calls of the collective before.
  void open(std::uint64_t sequence) noexcept;

  // A rank's first call of it. The operation outlives this object's use for the collective, or is withdrawn. False: the
  // calls do not fit, or did not before.
  bool add(const MadeCall& call, Places places);

  // The rank, whose call is there, does not take part after all. What it said in a mismatch remains said.
  void withdraw(int rank) noexcept;

  std::size_t arrived() const noexcept { return arrived_; }
  bool full() const noexcept { return arrived_ == calls_.size(); }
  bool has(int rank) const noexcept { return calls_[static_cast<std::size_t>(rank)] != nullptr; }
  // The rank that came first of those that are there; -1: none is.
  int first() const noexcept { return first_; }

  bool fit() const noexcept { return vote_ == nullptr && apart_.empty(); }
  // Do ranks take sides? Each of their calls is in the vote.
  bool begin_vote() const noexcept { return vote_ != nullptr; }
  bool all_have_voted() const noexcept { return vote_ != nullptr && vote_->all_have_come(); }

  // Where they do not fit.
  Mismatch mismatch() const;

  // For reports. `title`: title_of() the rank's call.
  std::string describe(std::string_view title) const;
  // The ranks (of the world) for which the rank, whose call is there, waits, ascending: those that are missing; or that
  // its call does not fit.
  std::vector<int> waits_for(int rank) const;

 private:
  bool agrees(const MadeCall& call) const noexcept;
  // Out of line: add() is on the way of every call, and with a thousand stacks each cache line of its frame counts.
  [[gnu::cold, gnu::noinline]] void cast(const MadeCall& call, Places places);
  [[gnu::noinline]] void check_edges(const MadeCall& call, Places places);
  void check_edges_of_part(const MadeCall& call, std::size_t part, Places places);
  void check_format(const MadeCall& call, Places places);
  void set_apart(const MadeCall& one, const MadeCall& other, Mismatch::Field field, Places places);
  MadeCall call_of(std::size_t rank) const noexcept;

  const GroupIdentity& group_;
  std::uint64_t sequence_ = 0;
  std::vector<const Operation*> calls_;  // by rank; null: not there
  std::size_t arrived_ = 0;
  int first_ = -1;
  // What all calls that are there agree on, while they do.
  std::uint64_t fingerprint_ = 0;
  const PayloadName* payload_ = nullptr;  // of the first call that has one
  std::int64_t even_split_ = -1;          // of an all-to-all: what every rank sends to every rank; -1: they differ
  std::unique_ptr<CallVote> vote_;        // null: no two calls differ
  std::vector<int> apart_;                // the two ranks (of the world) that do not expect what the other one sends
  Mismatch mismatch_;                     // of these two
};

}  // namespace rehearse::comm
