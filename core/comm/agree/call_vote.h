// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>

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

}  // namespace rehearse::comm
