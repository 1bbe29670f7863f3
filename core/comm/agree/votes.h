// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>

#include "comm/agree/made_call.h"
#include "comm/agree/vote.h"

namespace rehearse::comm {

// Of the calls of one collective.
class CallVote {
 public:
  CallVote(const GroupIdentity& group, std::uint64_t sequence)
      : group_(group), sequence_(sequence), vote_(group.ranks.size()) {}

  // What the call points to outlives this.
  void add(const MadeCall& call, exec::CallSite where);

  const Vote& vote() const noexcept { return vote_; }
  bool is_disputed() const noexcept { return calls_.size() > 1; }

  // Once it is disputed.
  Mismatch mismatch() const;

 private:
  const GroupIdentity& group_;
  const std::uint64_t sequence_;
  Vote vote_;
  std::vector<MadeCall> calls_;  // one of each party
};

// Of the calls of one new_group(), which is number `index` of the world.
class CreationVote {
 public:
  // `ranks` of the world.
  CreationVote(std::size_t ranks, std::size_t index) : index_(index), vote_(ranks) {}

  // `rank` passed `members` and `name`.
  void add(int rank, std::span<const int> members, std::string_view name, exec::CallSite where);

  const Vote& vote() const noexcept { return vote_; }
  bool is_disputed() const noexcept { return calls_.size() > 1; }

  // Once it is disputed.
  Mismatch mismatch() const;

 private:
  struct Call {
    std::vector<int> members;
    std::string name;
    bool operator==(const Call&) const = default;
  };

  const std::size_t index_;
  Vote vote_;
  std::vector<Call> calls_;  // of each party
};

}  // namespace rehearse::comm
