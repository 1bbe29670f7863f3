// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/comm/mismatch.h>
#include <rehearse/comm/rank_work.h>
#include <rehearse/exec/timer_queue.h>
#include <rehearse/exec/wait_queue.h>

namespace rehearse::comm {

class GroupState;

// The calls of one collective that do not agree. The world is about to end with a mismatch; before it does, ranks that
// are on their way may still arrive and take a side: where more than half of the group agrees, the report can name the
// odd one out.
class Dispute {
 public:
  Dispute(GroupState& group, std::uint64_t sequence) : group_(group), sequence_(sequence) {}

  // In order of arrival. Ends wait_for_the_others() when the whole group has come.
  void add(c10::intrusive_ptr<RankWork> work, exec::CallSite where);

  // Blocks `work`'s rank until all have come, a second of virtual time at most: more than lies between the ranks of
  // one step, less than what anybody takes for a hang. Throws RankAborted when the world ends meanwhile.
  void wait_for_the_others(const Meeting& meeting, const RankWork& work);

  // The ranks (of the world) that made another call than `work`'s, ascending.
  std::vector<int> opponents(const RankWork& work) const;

  // What is known now. `first` is the majority's call if there is one.
  Mismatch mismatch() const;

 private:
  struct Party {
    c10::intrusive_ptr<RankWork> work;  // of the one that came first
    exec::CallSite where;
    std::vector<int> ranks;  // of the world
  };

  class Patience final : public exec::Timer {
   public:
    explicit Patience(exec::WaitQueue& queue) : queue_(queue) {}
    bool over = false;

   private:
    void fire() override {
      over = true;
      queue_.notify_all();
    }
    exec::WaitQueue& queue_;
  };

  bool has_majority(const Party& party) const;
  Mismatch::Side side_of(const Party& party) const;

  GroupState& group_;
  const std::uint64_t sequence_;
  std::vector<Party> parties_;  // in order of arrival
  std::size_t arrived_ = 0;
  exec::WaitQueue queue_;
};

}  // namespace rehearse::comm
