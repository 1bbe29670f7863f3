// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "comm/agree/collective_calls.h"
#include "comm/matcher/collective_failure.h"
#include "comm/matcher/pending_mismatch.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

class CollectiveMatcher;

// One collective of a group, from the first rank's call to completion. Pooled: the same object serves again.
class CollectiveSlot final : public PendingMatch, public Completion, public exec::Timer {
 public:
  CollectiveSlot(const MatcherContext& context, CollectiveMatcher& matcher);

  void open(std::uint64_t sequence) noexcept;

  // Compares with the calls that are there. Throws MismatchError.
  void add(c10::intrusive_ptr<RankWork> work);
  bool full() const noexcept { return calls_.full(); }

  // Once it is full. May complete, and give the slot back, before it returns.
  void launch();

  std::uint64_t sequence() const noexcept { return sequence_; }
  // All ranks are there: is it a barrier, which begins when the collectives before it have ended?
  bool waits_for_prior_work() const noexcept;
  // Has the fabric done its part?
  bool is_carried_out() const noexcept { return state_ == State::carried_out; }

  // All collectives before it have ended: a barrier that waits begins; one that is carried out ends, and gives the slot
  // back.
  void begin_in_turn() noexcept;
  void end_in_turn() noexcept;

  // Rank 0 has given up on this monitored barrier, or will: those that wait, and all that come later, meet CommError.
  // Ranks that have called something else are left alone.
  void fail_monitored_barrier();

  // A collective that the rank's barrier here waits for has failed: so does the barrier, as Gloo's. Of other slots:
  // nothing.
  void follow_failure(const RankWork& prior, std::uint64_t sequence);

  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;
  void list_in_flight(int rank, Works& works) const;
  void close() noexcept;

  std::string describe(const RankWork& work) const override;
  std::vector<int> waits_for(const RankWork& work) const override;
  void expire(RankWork& work) override;
  void withdraw(RankWork& work) override;
  void on_launched() noexcept override;
  void on_done() noexcept override;
  void on_failed(std::exception_ptr why) noexcept override;

 private:
  // `waiting`: a barrier that all have reached, while collectives before it are under way.
  enum class State : std::uint8_t { free, open, waiting, launched, carried_out };

  void fire() override;
  bool gives_up() const noexcept override { return true; }
  void watch(VirtualTime deadline);
  bool is_under_way() const noexcept { return state_ > State::open; }
  bool is_monitored_barrier() const noexcept;
  void end_in_failure();
  void start();
  // For a call that does not fit, and every later one: waits for the end of the world, which the first one brings.
  [[noreturn]] void join_mismatch(c10::intrusive_ptr<RankWork> work);
  const RankWork& first() const noexcept { return *works_[static_cast<std::size_t>(calls_.first())]; }
  void fail(RankWork& work) const;
  void give_back() noexcept;

  const MatcherContext& context_;
  const GroupIdentity& group_;
  Services& services_;
  CollectiveMatcher& matcher_;
  std::vector<c10::intrusive_ptr<RankWork>> works_;  // by rank; null: not there
  CollectiveCalls calls_;                            // what they call
  std::vector<Operation*> given_;                    // to the fabric, by rank
  std::uint64_t sequence_ = 0;
  std::uint64_t signature_hash_ = 0;
  std::uint32_t signature_ = 0;  // of the call that came last
  Transfer transfer_;
  std::unique_ptr<PendingCallMismatch> pending_mismatch_;  // null: all calls so far agree
  CollectiveFailure failure_;
  State state_ = State::free;
};

// The collectives of a group. Each rank's n-th call belongs to the n-th collective. They end in order, as on NCCL's
// stream: one that the fabric has carried out before its turn ends with the one before it. A barrier, as Gloo's, begins
// when those before it have ended, and holds up nobody until then. The monitored barrier, which Gloo makes of messages,
// goes its own way.
class CollectiveMatcher {
 public:
  explicit CollectiveMatcher(const MatcherContext& context);

  void join(c10::intrusive_ptr<RankWork> work);

  std::uint64_t calls_of(int rank) const noexcept { return calls_[static_cast<std::size_t>(rank)]; }

  // The next collective of `rank` is a monitored barrier that is over before it begins.
  void fail_monitored_barrier_of(int rank);

  // The monitored barrier in which rank 0 timed out fails for all ranks; those that come later fail at once.
  // Throws TimeoutError with the text that rank 0 meets.
  [[noreturn]] void give_up_monitored_barrier(const RankWork& work, const TimeoutError& error, bool name_all);

  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;
  void list_in_flight(int rank, Works& works) const;
  void close() noexcept;

  // What follows is for its slots.

  // All ranks have called it. May it begin now?
  bool enter(CollectiveSlot& slot);
  // Ends what has come to its turn.
  void advance() noexcept;
  // It has failed.
  void leave(CollectiveSlot& slot) noexcept;
  // The rank's barriers after that collective fail as `work` has.
  void fail_barriers_after(const RankWork& work, std::uint64_t sequence);
  void give_back(CollectiveSlot& slot) { free_.push_back(&slot); }

 private:
  CollectiveSlot& slot_for(std::uint64_t index);
  bool is_any_under_way_before(const CollectiveSlot& slot) const noexcept;

  const MatcherContext context_;
  std::vector<std::uint64_t> calls_;  // by rank
  // Calls of one rank come in order, so collectives become full in order: what is open is a queue.
  std::deque<CollectiveSlot*> open_;
  std::uint64_t first_open_ = 0;
  std::deque<CollectiveSlot*> under_way_;  // the fabric has them: they end in this order
  std::deque<CollectiveSlot*> barriers_;   // that wait for those before them
  std::vector<std::unique_ptr<CollectiveSlot>> slots_;
  std::vector<CollectiveSlot*> free_;
};

}  // namespace rehearse::comm
