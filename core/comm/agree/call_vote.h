// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>

#include "comm/agree/made_call.h"
#include "comm/agree/vote.h"

namespace rehearse::comm {

// The vote on one collective whose calls differ in something on which all ranks must agree.
class CallVote {
 public:
  CallVote(const GroupIdentity& group, std::uint64_t sequence) : group_(group), sequence_(sequence) {}

  // The objects that `call` points to must outlive the vote.
  void add(const MadeCall& call, exec::CallSite where);

  bool all_have_come() const noexcept { return calls_.size() == group_.ranks.size(); }

  // The ranks whose calls differ from the call of `rank`, ascending. All are ranks of the world.
  std::vector<int> disagreeing_ranks(int rank) const { return parties().vote.disagreeing_ranks(rank); }

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

  const GroupIdentity& group_;
  const std::uint64_t sequence_;
  std::vector<Call> calls_;  // the calls that have arrived, by rank
};

}  // namespace rehearse::comm
