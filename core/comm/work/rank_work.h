// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <boost/intrusive/list.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/made_call.h"
#include "comm/work/pending_match.h"
#include "comm/work/work_futures.h"
#include "comm/work/work_owner.h"
#include "comm/work/work_record.h"
#include "comm/work/work_waiters.h"

namespace rehearse::comm {

class RankWork;

using Works = std::vector<c10::intrusive_ptr<RankWork>>;

// One rank's end of one operation.
//
// Blocking: wait() blocks the calling fiber; isCompleted() and isSuccess() are scheduling points (a loop around
// them lets the other ranks go on); nothing else blocks. Fibers: use it in the rank that made it.
// Ownership: whoever holds it; the group holds it too while it is incomplete, so dropping it cancels nothing. It may
// outlive its world: wait() then throws CommError unless the operation had completed.
// Time: when the operation's time is over it fails by itself, at that point of virtual time, whether or not anybody
// waits: wait() throws TimeoutError from then on, futures hold it, isCompleted() is true. Its tensors are no longer
// written, and what the other ranks have called or will call for it fails as well. A time limit given to wait() ends
// that wait alone: TimeoutError, and the operation stays in flight.
// On a device (Operation::end): wait() returns when the operation has been launched and orders the caller's current
// stream behind it, isCompleted() asks the device; a time limit counts until the launch. Errors: wait() throws
// TimeoutError, CommError after abort(), a failed monitoredBarrier(), or where another rank's time was over,
// RankAborted when the world ends meanwhile.
class RankWork final
    : public c10d::Work,
      // Among the works of its rank, until it is gone; see GroupWorld::release_works().
      public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // `rank` within the group.
  RankWork(c10::intrusive_ptr<WorkOwner> owner, int rank, c10d::OpType type);
  ~RankWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;  // while incomplete: of the last wait() that timed out

  // The rank (within the group) that a receive got its data from; throws until that is known, and for other ops.
  int sourceRank() const override;

  // The output tensors. Throws before the operation is complete.
  std::vector<at::Tensor> result() override;

  // No time limit given (kNoTimeout): that of the operation, from the call on. One given counts from now.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override;

  // A collective fails with CommError and no longer counts as called: the other ranks miss this one. (NCCL aborts the
  // whole communicator, Gloo has no such call.) Of a send or receive, as Gloo's: the wait() that is under way, or the
  // next one, returns false; the operation stays, and may be waited for again.
  void abort() override;

  // Holds the list of output tensors, as NCCL's; it is marked, and its callbacks run, in this rank's context.
  WorkFutures::Future getFuture() override;

  // A c10d::WorkResult: SUCCESS, COMM_ERROR after a failure, TIMEOUT when its time or that of a wait() was over,
  // whichever is first.
  WorkFutures::Future getFutureResult() override;

  // Virtual milliseconds between "all ranks are there" and completion; throws while incomplete.
  float getDuration() const override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  // What follows is for whoever makes and matches works.

  Operation operation;
  std::uint64_t fingerprint = 0;  // hash of what all ranks must agree on
  std::uint64_t signature = 0;    // hash of all that the event log keeps of the call

  MadeCall made() const noexcept { return {rank(), sequence_, &operation, fingerprint}; }

  const c10::intrusive_ptr<WorkOwner>& owner() const noexcept { return owner_; }
  const GroupIdentity& group() const noexcept { return owner_->identity(); }
  int rank() const noexcept { return rank_; }
  int global_rank() const noexcept { return group().global_rank(rank_); }
  // Not done: on a device it may have been launched, so that nobody waits for it any more.
  bool incomplete() const noexcept { return state_ == State::pending || state_ == State::launched; }
  bool succeeded() const noexcept { return state_ == State::completed; }
  bool gave_up() const noexcept { return gave_up_; }  // see PendingOperation
  bool timed_out() const noexcept { return timed_out_; }
  VirtualTime deadline() const noexcept { return deadline_; }

  const WorkRecord& record() const noexcept { return record_; }

  // What the work is part of while it is incomplete; null before enter(), after its end, and when the world is over.
  PendingMatch* match() const noexcept { return match_; }
  // `event`: its record, written on as the operation goes on; null: not recorded.
  void enter(PendingMatch* match, std::uint64_t sequence, Event* event) noexcept;
  void move_to(PendingMatch* match) noexcept;  // from the match that it is in
  void leave_match() noexcept { match_ = nullptr; }
  // Somebody knows of its end, or will: what nobody asks may be a wait that was left out.
  void mark_asked() noexcept { asked_ = true; }
  bool asked() const noexcept { return asked_; }
  // Report its end to the CallInterceptor, and when the rank first learns of the end.
  void watch() noexcept { watched_ = true; }
  bool watched() const noexcept { return watched_; }
  void note_known() const noexcept;
  // False if the CallInterceptor saw the arguments change since the call. It has then ended the world.
  bool is_unchanged() const { return !watched_ || owner_->is_unchanged(*this); }
  void set_source(int rank) noexcept {
    REHEARSE_CHECK(incomplete() && source_ < 0, rank_, sequence_, source_, rank);
    source_ = rank;
  }
  void start(VirtualTime now) noexcept { record_.start(now); }
  // Its device has been given it: waits are over, futures are marked, and time limits are the fabric's. Calls without
  // an Operation::end stay as they are.
  void launch();
  void complete(VirtualTime now);
  void fail(std::exception_ptr error);
  void break_off(std::exception_ptr error);  // as fail(); also noted as the group's error
  // For its match, when its time is over. Not progress, so that a hang that this ends is told as one. `prior`: what
  // an earlier operation has met which this one waited for; null: this one's own time is over.
  void time_out(std::exception_ptr prior = nullptr);
  void cancel();  // what abort() does to collectives, for any
  // As cancel(): `why` follows its title in the error, `rank` (of the world) is to blame.
  void withdraw(const std::string& why, int rank);
  // Fetches what complete() writes, in two steps: the second needs what the first one fetches.
  void prefetch() const noexcept;
  void prefetch_waiter() const noexcept { waiters_.prefetch_waiter(); }
  bool is_buffer() const noexcept { return !record_.is_open(); }  // nobody holds it: a buffered send's copy

  enum class Until : std::uint8_t { launched, done };  // done: also where wait() returns at the launch

  // wait() for a Work that this one is a part of: `waiting` says what is blocked, and for whom.
  bool wait_as_part(std::chrono::milliseconds timeout, const exec::Observer& waiting);
  // False: abort() has ended the wait.
  bool wait_until(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting);

 private:
  enum class State : std::uint8_t { pending, launched, completed, failed };

  enum class Wake : std::uint8_t { as_progress, as_timeout };

  bool is_over(Until until) const noexcept { return until == Until::done ? !incomplete() : state_ != State::pending; }
  bool done_on_device() const noexcept { return state_ == State::launched && operation.end->done(); }
  void finish(State state, Wake wake = Wake::as_progress);
  // What it has failed with; null: it has not. `exception_` is also that of a wait() whose time was over.
  std::exception_ptr failure() const noexcept { return state_ == State::failed ? exception_ : nullptr; }
  void post_marks();
  void mark_futures();
  c10d::WorkResult result_so_far() const noexcept {
    if (state_ == State::failed && !timed_out_) return c10d::WorkResult::COMM_ERROR;
    return gave_up_ || timed_out_ ? c10d::WorkResult::TIMEOUT : c10d::WorkResult::SUCCESS;
  }
  void note_that_it_is_known() const noexcept {
    gave_up_ = gave_up_ || timed_out_;
    if (state_ == State::failed && !owner_->closed()) owner_->note_failure_known(rank_);
  }
  [[noreturn]] void give_up(std::chrono::milliseconds limit, const exec::Observer& waiting);

  c10::intrusive_ptr<WorkOwner> owner_;
  std::uint64_t sequence_ = 0;
  VirtualTime deadline_ = VirtualTime::max();
  PendingMatch* match_ = nullptr;
  WorkRecord record_;
  WorkFutures futures_;

 public:
  using DeadlineHook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  DeadlineHook by_deadline;  // for DeadlineQueue; here, beside what else is touched at the work's end

 private:
  [[no_unique_address]] WorkWaiters waiters_;  // what follows fills its last bytes
  State state_ = State::pending;
  mutable bool gave_up_ = false;
  bool timed_out_ = false;
  int source_ = -1;
  bool asked_ = false;
  bool watched_ = false;
};

// With malloc's own word 512 bytes: what complete() writes lies in the same two cache lines of each work.
static_assert(sizeof(RankWork) <= 504);

// `allreduce #7 on group "world"`, `send #1 to rank 3 with tag 5 on group "world"`.
std::string title_of(const RankWork& work);

using RankWorks = boost::intrusive::list<RankWork, boost::intrusive::constant_time_size<false>>;

}  // namespace rehearse::comm
