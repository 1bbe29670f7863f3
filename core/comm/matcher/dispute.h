// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/votes.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Calls that should be the same and are not. The world is about to end with a mismatch; before it does, ranks that are
// on their way may still arrive and take a side: where more than half of them agrees, the report can name the odd one
// out.
class Dispute {
 public:
  explicit Dispute(const Services& services) : services_(services) {}
  virtual ~Dispute() = default;

  // For the call that began it; later ones wait for the end of the world. Blocks its rank until all have come, a second
  // of virtual time at most: more than lies between the ranks of one step, less than what anybody takes for a hang.
  // Then ends the world and throws MismatchError; throws RankAborted when it ends meanwhile, and has reported what was
  // known by then.
  [[noreturn]] void settle(const exec::Observer& observer);

  virtual const Vote& vote() const noexcept = 0;

 protected:
  // After each call that is added.
  void note_arrival() {
    if (vote().all_have_come()) queue_.notify_all();
  }

 private:
  class Patience;

  virtual Mismatch mismatch() const = 0;
  void wait_for_the_others(const exec::Observer& observer);

  const Services& services_;
  exec::WaitQueue queue_;
};

// Of the calls of one collective.
class CallDispute final : public Dispute {
 public:
  CallDispute(const MatcherContext& context, std::uint64_t sequence)
      : Dispute(context.services), vote_(context.group, sequence) {}

  void add(c10::intrusive_ptr<RankWork> work, exec::CallSite where);

  const Vote& vote() const noexcept override { return vote_.vote(); }

 private:
  Mismatch mismatch() const override { return vote_.mismatch(); }

  Works works_;  // those whose calls are in the vote
  CallVote vote_;
};

// Of the calls of one new_group(), which is number `index` of the world.
class CreationDispute final : public Dispute {
 public:
  // `ranks` of the world.
  CreationDispute(const Services& services, std::size_t ranks, std::size_t index)
      : Dispute(services), vote_(ranks, index) {}

  // `rank` passed `members` and `name`.
  void add(int rank, std::span<const int> members, std::string_view name, exec::CallSite where) {
    vote_.add(rank, members, name, std::move(where));
    note_arrival();
  }

  const Vote& vote() const noexcept override { return vote_.vote(); }

 private:
  Mismatch mismatch() const override { return vote_.mismatch(); }

  CreationVote vote_;
};

}  // namespace rehearse::comm
