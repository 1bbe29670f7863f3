// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "comm/agree/collective_calls.h"
#include "comm/matcher/pending_mismatch.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The reason why a collective has failed for all ranks. The calls of some ranks may have reached their time limits, or
// may have failed together with an earlier collective: note_timed_out(). Or rank 0 gave up a monitored barrier:
// note_given_up().
class CollectiveFailure {
 public:
  void clear() noexcept;

  void note_timed_out(const RankWork& work, VirtualTime now);
  void note_given_up() noexcept { given_up_ = true; }

  // Whether the collective can no longer complete.
  bool any() const noexcept { return given_up_ || !timed_out_.empty(); }

  // The error for a rank that waits for the collective or arrives later. Call it only if any().
  std::exception_ptr error_of(const RankWork& work, const exec::Clock& clock) const;

 private:
  bool given_up_ = false;       // rank 0 gave up a monitored barrier
  std::vector<int> timed_out_;  // ranks of the world, in the order of note_timed_out()
  VirtualTime since_{};         // when the first of them was noted
};

class CollectiveMatcher;

// One collective of a group, from the first rank's call to completion. Pooled: slots are reused.
class CollectiveSlot final : public PendingMatch, public Completion, public exec::Timer {
 public:
  CollectiveSlot(const MatcherContext& context, CollectiveMatcher& matcher);

  void open(std::uint64_t sequence) noexcept;

  // Adds the call, and compares it with the calls that have arrived. If they disagree, the world ends: the call throws
  // MismatchError or RankAborted, and may block during the vote.
  void add(c10::intrusive_ptr<RankWork> work);
  bool full() const noexcept { return calls_.full(); }
  // Null: no rank has called it, or all have withdrawn their calls.
  const RankWork* first_call() const noexcept {
    return calls_.first() < 0 ? nullptr : works_[static_cast<std::size_t>(calls_.first())].get();
  }

  // Call it when the slot is full. Before launch() returns, the collective may complete and the slot may go back to the
  // pool.
  void launch();

  std::uint64_t sequence() const noexcept { return sequence_; }
  // Whether the collective is a barrier (but not a monitored one), which begins only when the collectives before it
  // have ended. At least one rank must have called it.
  bool waits_for_prior_work() const noexcept;
  bool is_carried_out() const noexcept { return state_ == State::carried_out; }

  // begin_in_turn() starts a waiting barrier. end_in_turn() ends a collective that the fabric has carried out, and puts
  // the slot back into the pool. The matcher calls them when all collectives before this one have ended. Monitored
  // barriers do not count, because they end without waiting for their turn. For end_in_turn(), barriers that still wait
  // do not count either.
  void begin_in_turn() noexcept;
  void end_in_turn() noexcept;

  // Rank 0 has given up this monitored barrier, or will give it up. Ranks that wait in the barrier, and ranks that
  // arrive later, get CommError. Does nothing if ranks have arrived with another collective.
  void fail_monitored_barrier();

  // `prior`, a call of collective number `sequence`, has failed. If this slot is a later barrier that the same rank has
  // called, that call fails too, as in Gloo. Otherwise does nothing.
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
  // `waiting`: a barrier that all ranks have reached, while collectives before it are in flight.
  enum class State : std::uint8_t { free, open, waiting, launched, carried_out };

  void fire() override;
  bool gives_up() const noexcept override { return true; }
  Kind kind() const noexcept override { return Kind::limit; }
  void watch(VirtualTime deadline);
  bool is_under_way() const noexcept { return state_ > State::open; }
  void end_in_failure();
  void start();
  // Handles the first call that disagrees with the calls before it, and every later call of this collective. The first
  // one ends the world after the vote; the later ones wait for that end.
  [[noreturn]] void join_mismatch(c10::intrusive_ptr<RankWork> work);
  const RankWork& first() const noexcept { return *works_[static_cast<std::size_t>(calls_.first())]; }
  void fail(RankWork& work) const;
  void give_back() noexcept;

  const MatcherContext& context_;
  const GroupIdentity& group_;
  Services& services_;
  CollectiveMatcher& matcher_;
  std::vector<c10::intrusive_ptr<RankWork>> works_;  // by rank; null: has not arrived
  CollectiveCalls calls_;
  std::vector<Operation*> given_;  // the operations passed to the fabric, by rank
  std::uint64_t sequence_ = 0;
  std::uint64_t signature_hash_ = 0;
  std::uint32_t signature_ = 0;  // of the last call
  Transfer transfer_;
  std::unique_ptr<PendingCallMismatch> pending_mismatch_;  // null: the ranks do not vote
  CollectiveFailure failure_;
  State state_ = State::free;
};

// The collectives of a group. Each rank's n-th call belongs to the n-th collective. Collectives end in order, as on
// NCCL's stream: a collective that the fabric carries out before its turn ends together with the collective before it.
// Like Gloo's, a barrier begins after all earlier collectives have ended; until then it delays no other collective. The
// monitored barrier, which Gloo builds from messages, is exempt from this order.
class CollectiveMatcher {
 public:
  explicit CollectiveMatcher(const MatcherContext& context);

  void join(c10::intrusive_ptr<RankWork> work);

  std::uint64_t calls_of(int rank) const noexcept { return calls_[static_cast<std::size_t>(rank)]; }

  // The first call of the collective that `rank` calls next. Null: no rank has called it.
  const RankWork* first_call_with(int rank) const noexcept;

  // The next collective of `rank` will be a monitored barrier that must fail for all ranks.
  void fail_monitored_barrier_of(int rank);

  // Rank 0 has timed out in the monitored barrier of `work`: the barrier fails for all ranks; ranks that arrive later
  // fail at once. Throws TimeoutError with the text for rank 0, or `error` if all ranks have arrived.
  [[noreturn]] void give_up_monitored_barrier(const RankWork& work, const TimeoutError& error, bool name_all);

  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;
  void list_in_flight(int rank, Works& works) const;
  void close() noexcept;

  // The following functions are for its slots.

  // All ranks have called the slot's collective. Returns whether it may begin now.
  bool enter(CollectiveSlot& slot);
  // Ends the collectives whose turn has come, then begins the next waiting barrier if nothing before it is in flight.
  void advance() noexcept;
  // Call it when the slot's collective has failed.
  void leave(CollectiveSlot& slot) noexcept;
  // `work`, a call of collective number `sequence`, has failed. Fails the later barriers that the same rank has called,
  // too.
  void fail_barriers_after(const RankWork& work, std::uint64_t sequence);
  void give_back(CollectiveSlot& slot) { free_.push_back(&slot); }

 private:
  CollectiveSlot& slot_for(std::uint64_t index);
  bool is_any_under_way_before(const CollectiveSlot& slot) const noexcept;

  const MatcherContext context_;
  std::vector<std::uint64_t> calls_;  // by rank
  // Each rank's calls arrive in order, so collectives become full in order: the open ones form a queue.
  std::deque<CollectiveSlot*> open_;
  std::uint64_t first_open_ = 0;
  std::deque<CollectiveSlot*> under_way_;  // in the fabric; they end in this order
  std::deque<CollectiveSlot*> barriers_;   // the barriers that wait for earlier collectives
  std::vector<std::unique_ptr<CollectiveSlot>> slots_;
  std::vector<CollectiveSlot*> free_;
};

}  // namespace rehearse::comm
