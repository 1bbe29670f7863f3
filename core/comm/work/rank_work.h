// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <boost/intrusive/list.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/made_call.h"
#include "comm/work/work_futures.h"
#include "comm/work/work_owner.h"
#include "comm/work/work_waiters.h"

namespace rehearse::comm {

// The times at which a work began and ended. Also writes them into the event of its call, as long as the event log
// keeps the event.
class WorkRecord {
 public:
  // `event`: null if the call is not recorded.
  void open(Event* event) noexcept {
    REHEARSE_CHECK(!is_open(), id_);
    event_ = event;
    if (event != nullptr) id_ = event->record_id;
  }

  bool is_open() const noexcept { return id_ != Event::kNotRecorded; }
  std::uint64_t id() const noexcept { return id_; }  // record_id of the call's event

  // Null if the call is not recorded, or if a later call has taken the event's place.
  Event* event() const noexcept { return event_ != nullptr && event_->record_id == id_ ? event_ : nullptr; }

  void start(VirtualTime now) noexcept {
    REHEARSE_CHECK(now >= started_, id_);
    started_ = now;
    if (auto* const event = this->event()) event->time_started = now;
  }
  void complete(VirtualTime now) noexcept {
    ended_ = now;
    if (auto* const event = this->event()) event->time_ended = now;
  }
  void fail(VirtualTime now) noexcept {
    complete(now);
    if (auto* const event = this->event()) event->failed = 1;
  }

  VirtualTime ended() const noexcept { return ended_; }
  VirtualDuration duration() const noexcept { return ended_ - started_; }

  // The argument of a completion hook.
  std::shared_ptr<c10d::WorkInfo> info(c10d::OpType type, std::uint64_t sequence) const;

 private:
  Event* event_ = nullptr;
  std::uint64_t id_ = Event::kNotRecorded;  // identifies the event, because a later event may have overwritten it
  VirtualTime started_{};
  VirtualTime ended_{};
};

class RankWork;

// The match to which an incomplete work belongs: its collective, its matched pair, or the queues of sends and receives.
class PendingMatch {
 public:
  virtual ~PendingMatch() = default;
  virtual std::string describe(const RankWork& work) const = 0;
  virtual std::vector<int> waits_for(const RankWork& work) const = 0;  // ranks of the world
  // The work has reached its time limit: fails it, by RankWork::time_out(). A collective also fails the rank's later
  // barriers. A matched pair also fails the peer's call.
  virtual void expire(RankWork& work) = 0;
  // The work leaves the match. Unless all ranks of the collective, or the peer, have arrived, the other ranks will now
  // wait for its rank in vain.
  virtual void withdraw(RankWork& work) = 0;
};

class RankWork;

using Works = std::vector<c10::intrusive_ptr<RankWork>>;

// One rank's handle of one operation.
//
// Blocking: wait() blocks the calling fiber. isCompleted() and isSuccess() are scheduling points, so a loop around them
// lets the other ranks go on. Nothing else blocks. Fibers: use it in the rank that made it.
// Ownership: its holders share it. While it is incomplete, the group holds it too, so dropping it cancels nothing. It
// may outlive its world. wait() then throws CommError unless the operation had ended.
// Futures: callbacks run on a fiber of their own, and a wait ends after the callbacks that were there at the end, as in
// Gloo. Callbacks themselves see the end at once.
// Time: at its time limit the operation fails by itself, at that point of virtual time, whether or not any fiber waits.
// From then on wait() throws TimeoutError, getFuture() holds that error, and isCompleted() is true. The tensors are no
// longer written. The matching calls of other ranks fail too, whether these calls are past or future. A time limit
// passed to wait() ends only that wait, with TimeoutError; the operation stays in flight.
// On a device (Operation::end): wait() returns when the operation has been launched, and orders the caller's current
// stream after it. isCompleted() asks the device. The work enforces its time limit until the launch; afterwards the
// fabric enforces the limit.
// Errors: wait() throws TimeoutError if the operation has reached the time limit of this rank or of another rank. It
// throws CommError after abort() or a failed monitoredBarrier(), or if another rank closed the connection. It throws
// the fabric's error if a transfer fails, and RankAborted if the world ends meanwhile.
class RankWork final
    : public c10d::Work,
      // From GroupState::submit() on, a work is in the list of its rank's works, until the work is destroyed or the
      // rank ends (GroupWorld::release_works()).
      public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // `rank`: the caller's rank in the group.
  RankWork(c10::intrusive_ptr<WorkOwner> owner, int rank, c10d::OpType type);
  ~RankWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;  // while incomplete: that of the last timed-out wait()

  // The rank in the group from which a receive got its data. Throws until that is known, and for other operations.
  int sourceRank() const override;

  // The output tensors. Throws until the operation has ended or, on a device, has been launched.
  std::vector<at::Tensor> result() override;

  // Without a time limit (kNoTimeout), the operation's limit applies, counted from the call. A given limit counts from
  // now.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override;

  // A collective fails with CommError. Unless all ranks have called it, it no longer counts as called, so the other
  // ranks miss this rank's call. (NCCL aborts the whole communicator; Gloo has no such function.) A send or receive
  // behaves as in Gloo: the current wait(), or the next one, returns false. The operation stays in flight and may be
  // waited for again.
  void abort() override;

  // Holds the list of output tensors, as NCCL's future does. The future is marked, and its callbacks run, in this
  // rank's context.
  WorkFutures::Future getFuture() override;

  // Holds a c10d::WorkResult: SUCCESS, COMM_ERROR after a failure, or TIMEOUT after the first timeout of the operation
  // or of a wait().
  WorkFutures::Future getFutureResult() override;

  // Virtual milliseconds from the start of the transfer to completion or, if a device has measured the operation, the
  // device's own measurement. Throws if the operation has neither completed nor been measured.
  float getDuration() const override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  // The following members are for code that makes and matches works.

  Operation operation;
  std::uint64_t fingerprint = 0;  // hash of what all ranks must agree on
  std::uint64_t signature = 0;    // hash of everything that the event log keeps about the call

  MadeCall made() const noexcept { return {rank(), sequence_, &operation, fingerprint}; }

  const c10::intrusive_ptr<WorkOwner>& owner() const noexcept { return owner_; }
  const GroupIdentity& group() const noexcept { return owner_->identity(); }
  int rank() const noexcept { return rank_; }
  int global_rank() const noexcept { return group().global_rank(rank_); }
  // True until the operation is done. On a device, the operation may have been launched already, and then waits return.
  bool incomplete() const noexcept { return state_ == State::pending || state_ == State::launched; }
  bool succeeded() const noexcept { return state_ == State::completed; }
  // The operation is done or launched, but callbacks that must run before waits end have not run yet.
  bool callbacks_due() const noexcept { return callbacks_due_; }
  bool gave_up() const noexcept { return gave_up_ || waiters_.was_aborted(); }  // see PendingOperation
  bool timed_out() const noexcept { return timed_out_; }
  // The failure; null if the operation has not failed. Unlike exception(), does not count as a query of the program.
  std::exception_ptr failure() const noexcept { return state_ == State::failed ? exception_ : nullptr; }
  VirtualTime deadline() const noexcept { return deadline_; }  // see TimerQueue::limit_now()

  // The low bits of this_rank::fiber_of_rank() of the fiber that called a collective. 0: the main fiber, or not set.
  std::uint16_t thread() const noexcept { return thread_; }
  void set_thread(std::uint32_t fiber) noexcept { thread_ = static_cast<std::uint16_t>(fiber); }

  const WorkRecord& record() const noexcept { return record_; }

  // The match of an incomplete work. Null before enter(), after leave_match(), after the work's end, and after the end
  // of the world.
  PendingMatch* match() const noexcept { return match_; }
  // `event`: its record, updated while the operation proceeds; null: not recorded. `passed_by_choice`: see TimerQueue.
  void enter(PendingMatch* match, std::uint64_t sequence, Event* event, VirtualDuration passed_by_choice = {}) noexcept;
  void move_to(PendingMatch* match) noexcept;  // from its current match
  void leave_match() noexcept { match_ = nullptr; }
  // Notes that the program has waited for the work, has seen its end, or will learn of it. If this is never noted, the
  // program may have forgotten a wait.
  void mark_asked() noexcept { asked_ = true; }
  bool asked() const noexcept { return asked_; }
  // Makes the work report three events to the CallInterceptor: its end, that the rank has learned of the end, and that
  // no one can query the work any more.
  void watch() noexcept { watched_ = true; }
  bool watched() const noexcept { return watched_; }
  void note_known() const noexcept;
  // False if the CallInterceptor saw the arguments change since the call. Then the interceptor has ended the world.
  bool is_unchanged() const { return !watched_ || owner_->is_unchanged(*this); }
  void set_source(int rank) noexcept {
    REHEARSE_CHECK(incomplete() && source_ < 0, rank_, sequence_, source_, rank);
    source_ = rank;
  }
  void start(VirtualTime now) noexcept { record_.start(now); }
  // The device has launched it: waits end, futures are marked, and from now on the fabric enforces the time limit. Has
  // no effect on calls without an Operation::end.
  void launch();
  void complete(VirtualTime now);
  void fail(std::exception_ptr error);  // sets the rank's c10d::Backend::getError(), as time_out() does
  // The match calls this at the time limit. Does not count as progress, so that reports show the hang that the timeout
  // ends. `prior`: the failure of an earlier operation for which this operation waited; null: this operation has
  // reached its own limit.
  void time_out(std::exception_ptr prior = nullptr);
  void cancel();  // does for any operation what abort() does for collectives
  // Like cancel(), but leaves asked() as it is. The error consists of the work's title and `why`, and blames `rank`, a
  // rank of the world.
  void withdraw(const std::string& why, int rank);
  // Prefetch what complete() writes, in two steps, because the second needs the result of the first.
  void prefetch() const noexcept;
  void prefetch_waiter() const noexcept { waiters_.prefetch_waiter(); }
  // True for a work without a record. Among works in a match, these are the copies of buffered sends, which no program
  // holds.
  bool is_buffer() const noexcept { return !record_.is_open(); }

  // What a wait awaits. launched: the launch, which is enough for wait(). done: the end, on a device, too.
  enum class Until : std::uint8_t { launched, done };

  // wait() on behalf of a Work that contains this work. `waiting` describes the blocked call.
  bool wait_as_part(std::chrono::milliseconds timeout, const exec::Observer& waiting);
  // False if abort() has ended the wait.
  bool wait_until(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting);

 private:
  enum class State : std::uint8_t { pending, launched, completed, failed };

  using Wake = WorkWaiters::Wake;

  bool is_over(Until until) const noexcept {
    return (until == Until::done ? !incomplete() : state_ != State::pending) && !must_await_callbacks();
  }
  bool done_on_device() const noexcept { return state_ == State::launched && operation.end->done(); }
  bool is_over_for_callers() const noexcept {
    return is_over(Until::done) || (done_on_device() && !must_await_callbacks());
  }
  bool must_await_callbacks() const noexcept;
  void finish(State state, Wake wake = Wake::as_progress);
  void end_waits(Wake wake);  // once the callbacks have run
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
  DeadlineHook by_deadline;  // for DeadlineQueue; placed beside other members that the work's end touches

 private:
  [[no_unique_address]] WorkWaiters waiters_;  // the next members use its tail padding
  State state_ = State::pending;
  mutable bool gave_up_ = false;
  bool timed_out_ = false;
  bool callbacks_due_ = false;
  int source_ = -1;
  mutable bool asked_ = false;
  bool watched_ = false;
  std::uint16_t thread_ = 0;
};

// With malloc's own word, a work takes 512 bytes, a multiple of the cache line. So the members that complete() writes
// are in the same two lines of each work.
static_assert(sizeof(RankWork) <= 504);

// `allreduce #7 on group "world"`, `send #1 to rank 3 with tag 5 on group "world"`.
std::string title_of(const RankWork& work);

using RankWorks = boost::intrusive::list<RankWork, boost::intrusive::constant_time_size<false>>;

}  // namespace rehearse::comm
