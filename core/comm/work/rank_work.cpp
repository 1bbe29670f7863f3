// SPDX-License-Identifier: BSD-3-Clause
#include "rank_work.h"

#include <cstddef>
#include <optional>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/observer.h>
#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/call/host_view.h"
#include "exec/fiber/prefetch.h"
#include "work_observer.h"

namespace rehearse::comm {
namespace {

// The error of a rank whose work has not ended after `limit`. `waiting` describes the blocked call.
TimeoutError timeout_error(const RankWork& work, std::chrono::milliseconds limit, const exec::Observer& waiting) {
  const auto wait = waiting.wait();
  const auto& missing = wait.waits_for;
  const auto why = !work.incomplete() ? std::string("the call has ended, but its callbacks still run")
                   : missing.empty()  ? std::string("all ranks have called it, but the transfer takes longer")
                                      : "missing " + describe_ranks(missing);
  return {fmt::format("{}: Timed out waiting {}ms of {}; {}", wait.call, limit.count(),
                      exec::kind_of_time(work.owner()->executor().clock()), why),
          work.group().name, work.getSequencenumber(), missing};
}

// Throws the failure of a work. Creates a timeout error anew instead of rethrowing it, so that reports know where the
// rank waited.
[[noreturn]] void throw_failure(const std::exception_ptr& failure, bool timed_out) {
  if (!timed_out) std::rethrow_exception(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error);
  }
}

// A scheduling point while the work is incomplete.
void poll_for_the_end(const RankWork& work) {
  if (!(work.incomplete() || work.callbacks_due()) || work.owner()->closed() || !exec::this_rank::is_fiber()) return;
  const WorkObserver polling(work);
  exec::this_rank::poll(&polling);
}

}  // namespace

std::shared_ptr<c10d::WorkInfo> WorkRecord::info(c10d::OpType type, std::uint64_t sequence) const {
  using Clock = std::chrono::steady_clock;
  const auto at = [](VirtualTime time) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(time.time_since_epoch()));
  };
  return std::make_shared<c10d::WorkInfo>(type, sequence, at(started_), at(ended_), duration());
}

RankWork::RankWork(c10::intrusive_ptr<WorkOwner> owner, int rank, c10d::OpType type)
    : c10d::Work(rank, type), owner_(std::move(owner)) {
  operation.type = type;
}

RankWork::~RankWork() {
  // A work that was never submitted to its group has no record.
  if (!asked_ && record_.is_open() && !owner_->closed()) [[unlikely]]
    owner_->on_unasked(*this);
  if (watched_ && !owner_->closed()) [[unlikely]]
    owner_->on_released(*this);
}

void RankWork::enter(PendingMatch* match, std::uint64_t sequence, Event* event,
                     VirtualDuration passed_by_choice) noexcept {
  REHEARSE_CHECK(match_ == nullptr && state_ == State::pending, rank_, sequence_, sequence, state_);
  match_ = match;
  sequence_ = sequence;
  record_.open(event);
  if (event == nullptr) return;
  if (operation.timeout.count() > 0) deadline_ = later(event->time_created - passed_by_choice, operation.timeout);
}

void RankWork::move_to(PendingMatch* match) noexcept {
  REHEARSE_CHECK(match_ != nullptr && incomplete(), rank_, sequence_, state_);
  match_ = match;
}

void RankWork::prefetch() const noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // GCC and clang support offsetof for such classes
  static_assert(offsetof(RankWork, state_) + sizeof state_ - offsetof(RankWork, match_) <= 2 * exec::kCacheLine,
                "what complete() writes lies side by side, in no more than two lines' bytes");
#pragma GCC diagnostic pop
  exec::prefetch_to_write(&match_);
  exec::prefetch_to_write(&waiters_);
}

void RankWork::launch() {
  if (state_ != State::pending || operation.end == nullptr) return;
  state_ = State::launched;
  deadline_ = VirtualTime::max();
  by_deadline.unlink();
  end_waits(Wake::as_progress);
}

void RankWork::complete(VirtualTime now) {
  if (!incomplete()) return;
  if (gave_up_) [[unlikely]]
    exception_ = nullptr;
  record_.complete(now);
  finish(State::completed);
}

void RankWork::fail(std::exception_ptr error) {
  if (!incomplete()) return;
  exception_ = std::move(error);
  if (!owner_->closed()) record_.fail(owner_->executor().clock().now());
  owner_->note_error(rank_, c10d::ErrorType::COMM_ERROR);
  finish(State::failed);
}

void RankWork::time_out(std::exception_ptr prior) {
  if (!incomplete()) return;
  REHEARSE_CHECK(match_ != nullptr && !timed_out_, rank_, sequence_, state_);
  auto& executor = owner_->executor();
  const WorkObserver own(*this);
  const exec::Observer& waiting = waiters_.waiting() != nullptr ? *waiters_.waiting() : own;
  exception_ =
      prior != nullptr ? std::move(prior) : std::make_exception_ptr(timeout_error(*this, operation.timeout, waiting));
  timed_out_ = true;
  record_.fail(executor.clock().now());
  owner_->note_error(rank_, c10d::ErrorType::TIMEOUT);
  if (waiters_.waiting() != nullptr || futures_.has_outputs()) executor.note_given_up(global_rank(), waiting);
  finish(State::failed, Wake::as_timeout);
}

void RankWork::finish(State state, Wake wake) {
  REHEARSE_CHECK(incomplete(), rank_, sequence_, state_, state);
  state_ = state;
  match_ = nullptr;
  end_waits(wake);
  if (owner_->closed()) return;
  if (state == State::failed) owner_->executor().note_step();  // for ranks that poll isCompleted()
  owner_->on_end(*this);
}

// Gloo marks the future before it ends the work, and its barrier first waits for the rank's earlier works.
void RankWork::end_waits(Wake wake) {
  if (callbacks_due_) return;
  const bool is_open = !owner_->closed();
  const bool is_after_all =
      operation.type == c10d::OpType::BARRIER && is_open && owner_->executor().has_posted(global_rank());
  if (!is_after_all && !(futures_.to_mark() && is_open)) return waiters_.wake_all(wake);
  callbacks_due_ = true;
  const auto end = [self = c10::intrusive_ptr<RankWork>::reclaim_copy(this), wake] {
    if (self->futures_.to_mark()) self->mark_futures();
    self->callbacks_due_ = false;
    self->waiters_.wake_all(wake);
  };
  auto& executor = owner_->executor();
  is_after_all ? executor.post_after_all(global_rank(), end) : executor.post(global_rank(), end);
}

bool RankWork::must_await_callbacks() const noexcept {
  return callbacks_due_ && !owner_->closed() && !exec::this_rank::is_callback();
}

void RankWork::note_known() const noexcept {
  if (state_ == State::pending) return;
  owner_->note_known(*this);
  if (watched_ && !incomplete() && !owner_->closed()) [[unlikely]]
    owner_->on_known(*this);
}

bool RankWork::isCompleted() {
  poll_for_the_end(*this);
  const bool over = is_over_for_callers();
  asked_ = asked_ || over;
  if (over) note_known();
  return over;
}

bool RankWork::isSuccess() const {
  poll_for_the_end(*this);
  note_that_it_is_known();
  if (!is_over_for_callers()) return false;
  asked_ = true;
  note_known();
  return state_ != State::failed;
}

std::exception_ptr RankWork::exception() const {
  note_that_it_is_known();
  return exception_;
}

int RankWork::sourceRank() const {
  TORCH_CHECK(source_ >= 0,
              "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.");
  return source_;
}

std::vector<at::Tensor> RankWork::result() {
  TORCH_CHECK(state_ != State::pending,
              "Work needs to be completed before calling result(). Should call wait() before result().");
  note_known();
  return of_caller(operation.outputs);
}

// On the CPU, it waits for nothing.
void RankWork::synchronize() {
  if (operation.end == nullptr) return;
  asked_ = true;
  note_known();
}

void RankWork::abort() {
  asked_ = true;
  if (!incomplete()) return;
  if (!is_point_to_point(operation.type)) return cancel();
  waiters_.abort();
}

void RankWork::cancel() {
  asked_ = true;
  if (incomplete() && !owner_->closed() && !WorkObserver(*this).waits_for().empty()) owner_->note_aborted(*this);
  withdraw("was aborted", global_rank());
}

void RankWork::withdraw(const std::string& why, int rank) {
  if (!incomplete()) return;
  const auto self = c10::intrusive_ptr<RankWork>::reclaim_copy(this);  // the match may have held the last reference
  if (match_ != nullptr) match_->withdraw(*this);
  fail(std::make_exception_ptr(CommError(fmt::format("{} {}", title_of(*this), why), group().name, sequence_, {rank})));
}

WorkFutures::Future RankWork::getFuture() {
  asked_ = true;
  if (futures_.has_outputs()) return futures_.outputs(operation);
  auto future = futures_.outputs(operation);
  if (incomplete() && owner_->closed()) {
    future->setError(
        std::make_exception_ptr(CommError(title_of(*this) + ": the world is over", group().name, sequence_, {})));
  } else if (state_ != State::pending) {
    mark_futures();
  }
  return future;
}

WorkFutures::Future RankWork::getFutureResult() {
  asked_ = true;
  if (futures_.has_result()) return futures_.result();
  auto future = futures_.result();
  if (state_ != State::pending || gave_up_) futures_.mark_result(result_so_far());
  return future;
}

void RankWork::mark_futures() {
  std::optional<c10::StreamGuard> on_stream;
  if (operation.end != nullptr) on_stream.emplace(operation.end->stream());
  note_that_it_is_known();
  note_known();
  if (state_ == State::failed) exec::this_rank::keep_error(exception_);
  futures_.mark_result(result_so_far());
  futures_.mark_outputs(operation, failure());
}

float RankWork::getDuration() const {
  if (operation.end != nullptr) {
    if (const auto measured = operation.end->milliseconds()) return *measured;
  }
  TORCH_CHECK(state_ == State::completed, "getDuration() may only be called when the work has completed");
  return std::chrono::duration<float, std::milli>(record_.duration()).count();
}

bool RankWork::wait(std::chrono::milliseconds timeout) {
  exec::this_rank::begin_call();
  const bool whole = wait_as_part(timeout, WorkObserver(*this));
  exec::this_rank::end_call();
  return whole;
}

bool RankWork::wait_as_part(std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  if (!wait_until(Until::launched, timeout, waiting)) return false;
  if (operation.end != nullptr) operation.end->order();
  return true;
}

bool RankWork::wait_until(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  asked_ = true;
  if (!is_over(until)) {
    const auto& clock = owner_->executor().clock();
    std::optional<VirtualTime> limit;
    if (timeout.count() > 0) limit = later(clock.now(), timeout);
    const auto ended = waiters_.wait([this, until] { return is_over(until); }, clock, limit, waiting);
    if (ended == WorkWaiters::Ended::aborted) return false;
    if (ended == WorkWaiters::Ended::out_of_time) give_up(timeout, waiting);
  }
  note_known();
  if (state_ != State::failed) return true;
  note_that_it_is_known();
  exec::this_rank::fail_call(exception_);
  throw_failure(exception_, timed_out_);
}

// Ends only the wait. The operation stays in flight; or it has ended, and the wait was for its callbacks.
void RankWork::give_up(std::chrono::milliseconds limit, const exec::Observer& waiting) {
  const bool in_flight = incomplete();
  exec::this_rank::note_given_up(waiting);
  if (in_flight) {
    gave_up_ = true;
    owner_->note_failure_known(rank_);
    owner_->note_error(rank_, c10d::ErrorType::TIMEOUT);
    futures_.mark_result(result_so_far());
  }
  try {
    throw timeout_error(*this, limit, waiting);
  } catch (...) {
    if (in_flight) exception_ = std::current_exception();
    exec::this_rank::fail_call(std::current_exception());
    throw;
  }
}

std::string title_of(const RankWork& work) { return title_of(work.operation, work.getSequencenumber(), work.group()); }

}  // namespace rehearse::comm
