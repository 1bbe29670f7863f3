// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/FunctionRef.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/made_call.h"
#include "comm/agree/vote.h"

namespace rehearse::comm {

// The vote on one collective whose calls do not match. There are two kinds of mismatch. Calls differ in something on
// which all ranks must agree; then the majority is right. Or all agree, but some rank sends something that another rank
// does not expect. Then either of the two may be wrong; but a rank that fits several others worse than any other rank
// fits its peers is taken for the wrong one.
class CallVote {
 public:
  CallVote(const GroupIdentity& group, std::uint64_t sequence) : group_(group), sequence_(sequence) {}

  // The objects that `call` points to must outlive the vote.
  void add(const MadeCall& call, exec::CallSite where);

  bool all_have_come() const noexcept { return calls_.size() == group_.ranks.size(); }

  // The ranks whose calls do not match the call of `rank`, ascending; if it matches all, those that do not match each
  // other. All are ranks of the world.
  std::vector<int> disagreeing_ranks(int rank) const;

  Mismatch mismatch() const;

 private:
  struct Call {
    MadeCall made;
    exec::CallSite where;
  };
  struct Parties {
    Vote vote;
    std::vector<const Operation*> calls;  // one call of each party
  };

  // Counts the calls anew in order of rank. A call without a payload name fits several parties, and its party must not
  // depend on the order in which calls arrived.
  Parties parties() const;
  Mismatch mismatch_of_exchange() const;
  const Call& call_of(int rank) const;  // within the group

  const GroupIdentity& group_;
  const std::uint64_t sequence_;
  std::vector<Call> calls_;                  // the calls that have arrived, by rank
  std::set<std::pair<int, int>> exchanges_;  // ranks of the group, lower first, with an exchange_difference()
};

// The calls that have arrived for one collective of a group: which ranks are missing, and whether the calls match.
// If the calls do not match, the ranks vote, because later ranks may make a majority.
//
// Ranks are ranks in the group unless stated otherwise. One object is reused for one collective after another.
class CollectiveCalls {
 public:
  // Returns where a rank that has arrived made its call. Called only for reports.
  using Places = c10::function_ref<exec::CallSite(int rank)>;

  explicit CollectiveCalls(const GroupIdentity& group);

  // Starts the next collective and forgets the calls of the previous one.
  void open(std::uint64_t sequence) noexcept;

  // Adds a rank's first call of the collective. The operation must stay valid until the next open() or, if the calls
  // match, until withdraw() removes the call. Returns false if this call does not match, or if earlier calls did not
  // match. Then the ranks vote, and the vote includes every call that has arrived.
  bool add(const MadeCall& call, Places places);

  // Removes the call of `rank`, which must be present. A mismatch that the call has already caused still includes it.
  void withdraw(int rank) noexcept;

  std::size_t arrived() const noexcept { return arrived_; }
  bool full() const noexcept { return arrived_ == calls_.size(); }
  bool has(int rank) const noexcept { return calls_[static_cast<std::size_t>(rank)] != nullptr; }
  // The rank that arrived first or, if its call was withdrawn, the lowest rank that is present. -1: none is present.
  int first() const noexcept { return first_; }

  bool fit() const noexcept { return vote_ == nullptr; }
  bool all_have_voted() const noexcept { return vote_ != nullptr && vote_->all_have_come(); }

  // Call it only if the calls do not match.
  Mismatch mismatch() const;

  // Text for reports. `title`: the title_of() of the rank's call.
  std::string describe(std::string_view title) const;
  // The ranks of the world for which `rank` waits, ascending; its call must be present. If the calls match, these are
  // the missing ranks; otherwise CallVote::disagreeing_ranks().
  std::vector<int> waits_for(int rank) const;

 private:
  bool agrees(const MadeCall& call) const noexcept;
  // Out of line: add() runs for every call, and with a thousand stacks each cache line of its frame counts.
  [[gnu::cold, gnu::noinline]] void cast(const MadeCall& call, Places places);
  [[gnu::noinline]] bool exchanges_fit(const MadeCall& call);
  MadeCall call_of(std::size_t rank) const noexcept;

  const GroupIdentity& group_;
  std::uint64_t sequence_ = 0;
  std::vector<const Operation*> calls_;  // by rank; null: not present
  std::size_t arrived_ = 0;
  int first_ = -1;
  // The values in which all present calls agree. Valid as long as the calls match.
  std::uint64_t fingerprint_ = 0;
  const PayloadName* payload_ = nullptr;  // from the first call with a payload name
  std::int64_t even_split_ = -1;    // for an all-to-all: what every rank sends to every rank; -1: the splits differ
  std::unique_ptr<CallVote> vote_;  // null: the calls match
};

}  // namespace rehearse::comm
