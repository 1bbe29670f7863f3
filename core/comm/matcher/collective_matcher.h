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

#include "comm/matcher/dispute.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

class CollectiveMatcher;

// One collective of a group, from the first rank's call to completion. Pooled: the same object serves again.
class CollectiveSlot final : public Meeting, public Completion, public exec::Timer {
 public:
  CollectiveSlot(const MatcherContext& context, CollectiveMatcher& matcher);

  void open(std::uint64_t sequence) noexcept;

  // Compares with the calls that are there. Throws MismatchError.
  void add(c10::intrusive_ptr<RankWork> work);
  bool full() const noexcept { return arrived_ == works_.size(); }

  // Once it is full. May complete, and give the slot back, before it returns.
  void launch();

  // An earlier collective of the group has ended. True: it was the last one for which this barrier waits.
  bool came_to_its_turn(std::uint64_t ended) noexcept { return ended < sequence_ && --prior_ == 0; }
  void start_in_turn() noexcept;

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
  enum class State : std::uint8_t { free, open, launched };

  void fire() override;
  bool gives_up() const noexcept override { return true; }
  void watch(VirtualTime deadline);
  bool over() const noexcept { return failed_ || !timed_out_.empty(); }
  bool waits_for_prior_work() const noexcept;
  void note_timed_out(const RankWork& work);
  void end_in_failure();
  void start();
  // For a call that does not fit, and every later one: waits for the end of the world, which the first one brings.
  [[noreturn]] void dispute(c10::intrusive_ptr<RankWork> work);
  void check_splits(const RankWork& work);
  void check_edges(const RankWork& work);
  void check_format(const RankWork& work);
  // `field`: the value of the lower rank first.
  [[noreturn]] void disagree(const RankWork& one, const RankWork& other, const RankWork& caller, Mismatch::Field field);
  void check_all_edges(const RankWork& work, std::size_t part);
  void check_edge(const RankWork& sender, const RankWork& receiver, const RankWork& caller, std::size_t part);
  void fail(RankWork& work) const;
  std::exception_ptr monitored_barrier_error(const RankWork& work) const;
  std::exception_ptr time_is_over_error(const RankWork& work) const;
  void give_back() noexcept;

  const MatcherContext& context_;
  const GroupIdentity& group_;
  Services& services_;
  CollectiveMatcher& matcher_;
  std::vector<c10::intrusive_ptr<RankWork>> works_;  // by rank; null: not there
  std::vector<Operation*> calls_;
  std::size_t arrived_ = 0;
  std::size_t prior_ = 0;  // of a barrier that all have reached: earlier collectives that have yet to end
  const RankWork* first_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t signature_hash_ = 0;
  std::uint32_t signature_ = 0;
  std::int64_t even_split_ = -1;  // all-to-all: every split of every call so far; -1: they differ
  Transfer transfer_;
  std::unique_ptr<CallDispute> dispute_;  // null: all calls so far agree
  std::vector<int> disagreeing_;          // all-to-all: the two ranks (of the world) whose splits do not fit
  bool failed_ = false;                   // a monitored barrier that rank 0 has given up
  std::vector<int> timed_out_;            // ranks (of the world) whose time was over: nobody else can complete it
  VirtualTime over_at_{};                 // of the first of them
  State state_ = State::free;
};

// The collectives of a group that are under way. Each rank's n-th call belongs to the n-th collective.
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

 private:
  friend class CollectiveSlot;
  CollectiveSlot& slot_for(std::uint64_t index);
  void give_back(CollectiveSlot& slot) { free_.push_back(&slot); }

  // All ranks have called the collective. How many earlier ones have not ended; unless 0, a barrier is told of each
  // end.
  std::size_t begin(CollectiveSlot& slot, bool is_barrier);
  void end(std::uint64_t sequence);
  void end_before_its_turn(CollectiveSlot& slot) { std::erase(in_turn_, &slot); }
  void fail_barriers_after(const RankWork& work, std::uint64_t sequence);

  const MatcherContext context_;
  std::vector<std::uint64_t> calls_;  // by rank
  // Calls of one rank come in order, so collectives become full in order: what is open is a queue.
  std::deque<CollectiveSlot*> open_;
  std::uint64_t first_open_ = 0;
  std::size_t under_way_ = 0;             // all ranks are there, and it has not ended
  std::vector<CollectiveSlot*> in_turn_;  // of those the barriers that wait for others, in order
  std::vector<std::unique_ptr<CollectiveSlot>> slots_;
  std::vector<CollectiveSlot*> free_;
};

}  // namespace rehearse::comm
