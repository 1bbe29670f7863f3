// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "comm/agree/mailboxes.h"
#include "comm/matcher/batches.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The sends and receives of a group that have a deadline, by deadline, with one timer for all of them. Time limits are
// mostly equal, so a new work usually belongs at the end.
class DeadlineQueue final : public exec::Timer {
 public:
  DeadlineQueue(exec::TimerQueue& timers, const exec::Clock& clock) : timers_(timers), clock_(clock) {}

  void add(RankWork& work);
  void remove(RankWork& work) noexcept;  // must be in the queue
  void clear() noexcept;

 private:
  using Works =
      boost::intrusive::list<RankWork,
                             boost::intrusive::member_hook<RankWork, RankWork::DeadlineHook, &RankWork::by_deadline>,
                             boost::intrusive::constant_time_size<false>>;

  void fire() override;
  bool gives_up() const noexcept override { return true; }
  Kind kind() const noexcept override { return Kind::limit; }

  exec::TimerQueue& timers_;
  const exec::Clock& clock_;
  Works works_;
};

class PointToPointMatcher;

// A send and its receive: in flight, or held until they can be launched (see Batches). Pooled.
class MatchedPair final : public PendingMatch, public Completion {
 public:
  MatchedPair(const MatcherContext& context, PointToPointMatcher& matcher) : context_(context), matcher_(matcher) {}

  void join(c10::intrusive_ptr<RankWork> send, c10::intrusive_ptr<RankWork> recv);

  // Call it after join(). Before launch() returns, the transfer may complete and the pair may go back to the pool.
  void launch();

  const RankWork* send() const noexcept { return send_.get(); }
  const RankWork* recv() const noexcept { return recv_.get(); }
  bool is_of(const RankWork& work) const noexcept { return &work == send() || &work == recv(); }

  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;
  void list_in_flight(int rank, Works& works) const;
  void close() noexcept;

  std::string describe(const RankWork& work) const override;
  std::vector<int> waits_for(const RankWork& work) const override;
  void expire(RankWork& work) override;
  void withdraw(RankWork& work) override { work.leave_match(); }  // the pair stays matched
  void on_launched() noexcept override;
  void on_done() noexcept override;
  void on_failed(std::exception_ptr why) noexcept override;

 private:
  const MatcherContext& context_;
  PointToPointMatcher& matcher_;
  c10::intrusive_ptr<RankWork> send_, recv_;
  Operation* calls_[2] = {};
  Transfer transfer_;
  bool held_ = false;
};

// The sends and receives of a group. A receive takes its peer's oldest send with the same tag. For a receive from any
// source, the oracle chooses the peer among the ranks that have sent with this tag.
class PointToPointMatcher final : public PendingMatch {
 public:
  // `buffered_sends`: see CommunicatorOptions.
  PointToPointMatcher(const MatcherContext& context, bool buffered_sends);

  void join(c10::intrusive_ptr<RankWork> work);

  std::uint64_t calls_of(int rank) const noexcept { return calls_[static_cast<std::size_t>(rank)]; }

  // Makes a batch of sends and receives of one rank that have not joined yet.
  void coalesce(Works works) { batches_.add(std::move(works)); }

  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;
  void list_in_flight(int rank, Works& works) const;
  void close() noexcept;

  std::string describe(const RankWork& work) const override;
  std::vector<int> waits_for(const RankWork& work) const override;
  void expire(RankWork& work) override { work.time_out(); }  // stays, so that a late peer finds it
  void withdraw(RankWork& work) override;

  // Call it when a work that has a deadline ends.
  void no_longer_due(RankWork& work) noexcept;

  // The following functions are for its pairs.

  // Fails `late`, because its peer's call has already ended.
  void refuse(RankWork& late, const RankWork& ended) const;
  Batches& batches() noexcept { return batches_; }
  void give_back(MatchedPair& pair) { free_.push_back(&pair); }

 private:
  struct Unmet {
    c10::intrusive_ptr<RankWork> work;
    // The Event::record_id of a send. `work` does not have it if it is the copy that buffer() makes.
    std::uint64_t sent_as = 0;
  };

  void join_send(c10::intrusive_ptr<RankWork> send);
  void join_receive(c10::intrusive_ptr<RankWork> recv);
  // The rank whose send the receive takes: its peer or, for a receive from any source, a rank that has sent; -1: none
  // has.
  int choose_source(const RankWork& recv);
  c10::intrusive_ptr<RankWork> buffer(RankWork& send);
  void match(c10::intrusive_ptr<RankWork> send, c10::intrusive_ptr<RankWork> recv, bool send_came_last);
  void note_source(const RankWork& recv, int source, const std::vector<int>& sources) const;

  const MatcherContext context_;
  const GroupIdentity& group_;
  Services& services_;
  const bool buffered_sends_;
  std::vector<std::uint64_t> calls_;  // by rank
  DeadlineQueue deadlines_;
  Batches batches_;
  Mailboxes<Unmet> mailboxes_;
  std::vector<std::unique_ptr<MatchedPair>> pairs_;
  std::vector<MatchedPair*> free_;
  std::array<c10::intrusive_ptr<RankWork>, 2> disagreeing_;  // a mismatched pair, which ends the world
};

}  // namespace rehearse::comm
