// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Calls that should be the same and are not. The world is about to end with a mismatch; before it does, ranks that are
// on their way may still arrive and take a side: where more than half of them agrees, the report can name the odd one
// out. What is told depends on who came, not on the order in which they came.
class Dispute {
 public:
  // `ranks`: how many will come at most.
  Dispute(const Services& services, std::size_t ranks) : services_(services), ranks_(ranks) {}
  virtual ~Dispute() = default;

  // For the call that began it; later ones wait for the end of the world. Blocks its rank until all have come, a second
  // of virtual time at most: more than lies between the ranks of one step, less than what anybody takes for a hang.
  // Then ends the world and throws MismatchError; throws RankAborted when it ends meanwhile, and has reported what was
  // known by then.
  [[noreturn]] void settle(const exec::Observer& observer);

  // The ranks (of the world) that made another call than `rank`, ascending.
  std::vector<int> opponents(int rank) const;

 protected:
  // A rank has come; the caller knows what each party has called. `party`: its number, that of a new one is the next.
  void take_side(std::size_t party, int rank, exec::CallSite where);

  // With the text of each party's call, a mismatch but for its place and the fields that differ: in order the majority,
  // then by the lowest rank.
  std::vector<std::size_t> in_order() const;
  Mismatch mismatch_of(const std::vector<std::size_t>& order, const std::vector<std::string>& texts) const;

 private:
  class Patience;
  struct Party {
    std::vector<int> ranks;  // of the world, ascending
    exec::CallSite where;    // of the first of them
  };

  virtual Mismatch mismatch() const = 0;
  bool has_majority(std::size_t party) const { return parties_[party].ranks.size() * 2 > ranks_; }
  void wait_for_the_others(const exec::Observer& observer);

  const Services& services_;
  const std::size_t ranks_;
  std::vector<Party> parties_;
  std::size_t arrived_ = 0;
  exec::WaitQueue queue_;
};

// Of the calls of one collective.
class CallDispute final : public Dispute {
 public:
  CallDispute(const MatcherContext& context, std::uint64_t sequence);

  void add(c10::intrusive_ptr<RankWork> work, exec::CallSite where);

 private:
  Mismatch mismatch() const override;

  const GroupIdentity& group_;
  const std::uint64_t sequence_;
  Works calls_;  // one of each party
};

}  // namespace rehearse::comm
