// SPDX-License-Identifier: BSD-3-Clause
#include "rank_work.h"

#include <new>
#include <optional>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/rank_list.h>
#include <rehearse/exec/this_rank.h>

#include "comm/call/title.h"
#include "exec/prefetch.h"
#include "work_observer.h"

namespace rehearse::comm {
namespace {

// Futures synchronise with streams of devices, which the host has none of.
std::vector<c10::Device> devices_of(const Operation& call) {
  if (call.end == nullptr || call.end->stream().device().is_cpu()) return {};
  return {call.end->stream().device()};
}

}  // namespace

RankWork::RankWork(c10::intrusive_ptr<WorkOwner> owner, int rank, c10d::OpType type)
    : c10d::Work(rank, type), owner_(std::move(owner)) {
  operation.type = type;
}

RankWork::~RankWork() {
  // A work that was never handed to its group has no record either.
  if (!asked_ && record_id_ != Event::kNotRecorded && !owner_->closed()) [[unlikely]]
    owner_->on_unasked(*this);
}

void RankWork::enter(Meeting* meeting, std::uint64_t sequence, Event* event) noexcept {
  meeting_ = meeting;
  sequence_ = sequence;
  event_ = event;
  if (event == nullptr) return;
  record_id_ = event->record_id;
  created_ = event->time_created;
  if (operation.timeout.count() > 0) deadline_ = created_ + operation.timeout;
}

const Event* RankWork::event() const noexcept {
  return event_ != nullptr && event_->record_id == record_id_ ? event_ : nullptr;
}

void RankWork::start(VirtualTime now) noexcept {
  started_ = now;
  if (event() != nullptr) event_->time_started = now;
}

void RankWork::prefetch() const noexcept {
  exec::prefetch_to_write(&meeting_);
  exec::prefetch_to_write(&waiters_);
}

void RankWork::launch() {
  if (state_ != State::pending || operation.end == nullptr) return;
  state_ = State::launched;
  deadline_ = VirtualTime::max();
  by_deadline.unlink();
  waiters_.notify_all();
  post_marks();
}

void RankWork::complete(VirtualTime now) {
  if (!incomplete()) return;
  completed_at_ = now;
  if (event() != nullptr) event_->time_completed = now;
  finish(State::completed);
}

void RankWork::fail(std::exception_ptr error) {
  if (!incomplete()) return;
  exception_ = std::move(error);
  if (!owner_->closed()) completed_at_ = owner_->executor().clock().now();
  finish(State::failed);
}

void RankWork::time_out() {
  if (!incomplete()) return;
  const WorkObserver own(*this);
  time_out(std::make_exception_ptr(timeout_error(operation.timeout, waiting_ != nullptr ? *waiting_ : own)));
}

void RankWork::time_out(std::exception_ptr error) {
  if (!incomplete()) return;
  auto& executor = owner_->executor();
  const WorkObserver own(*this);
  timed_out_ = true;
  exception_ = std::move(error);
  completed_at_ = executor.clock().now();
  owner_->note_error(rank_, c10d::ErrorType::TIMEOUT);
  if (waiting_ != nullptr || future_ != nullptr) {
    executor.note_given_up(global_rank(), waiting_ != nullptr ? *waiting_ : own);
  }
  finish(State::failed, Wake::as_timeout);
}

void RankWork::finish(State state, Wake wake) {
  state_ = state;
  meeting_ = nullptr;
  if (wake == Wake::as_timeout) {
    waiters_.time_out_all();
  } else {
    waiters_.notify_all();
  }
  if (owner_->closed()) return;
  owner_->on_end(*this);
  post_marks();
}

void RankWork::post_marks() {
  const auto to_mark = [](const auto& future) { return future != nullptr && !future->completed(); };
  if (!to_mark(future_) && !to_mark(result_future_)) return;
  auto self = c10::intrusive_ptr<RankWork>::reclaim_copy(this);
  owner_->executor().post(global_rank(), [self] { self->mark_futures(); });
}

bool RankWork::isCompleted() {
  if (incomplete() && !owner_->closed() && exec::this_rank::is_fiber()) exec::this_rank::poll();
  const bool over = !incomplete() || done_on_device();
  asked_ = asked_ || over;
  return over;
}

bool RankWork::isSuccess() const {
  note_that_it_is_known();
  return state_ == State::completed || done_on_device();
}

std::exception_ptr RankWork::exception() const {
  note_that_it_is_known();
  return incomplete() ? timeout_ : exception_;
}

int RankWork::sourceRank() const {
  TORCH_CHECK(source_ >= 0,
              "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.");
  return source_;
}

std::vector<at::Tensor> RankWork::result() {
  TORCH_CHECK(state_ != State::pending,
              "Work needs to be completed before calling result(). Should call wait() before result().");
  return {operation.outputs.begin(), operation.outputs.end()};
}

void RankWork::synchronize() { asked_ = true; }

bool RankWork::wait(std::chrono::milliseconds timeout) { return wait_as_part(timeout, WorkObserver(*this)); }

bool RankWork::wait_as_part(std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  if (!wait_until(Until::launched, timeout, waiting)) return false;
  if (operation.end != nullptr) operation.end->order();
  if (operation.type == c10d::OpType::BARRIER) owner_->note_barrier(rank_, record_id_);
  return true;
}

void RankWork::wait_until_done() { wait_until(Until::done, kNoTimeout, WorkObserver(*this)); }

bool RankWork::wait_until(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  asked_ = true;
  if (!is_over(until) && !block(until, timeout, waiting)) return false;
  if (exception_ != nullptr) throw_failure();
  return true;
}

// False: abort() ended the wait.
bool RankWork::block(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  auto& executor = owner_->executor();
  std::optional<VirtualTime> limit;
  if (timeout.count() > 0) limit = executor.clock().now() + timeout;
  const auto no_longer = c10::make_scope_exit([this]() noexcept { waiting_ = nullptr; });
  waiting_ = &waiting;
  while (!is_over(until)) {
    if (std::exchange(wait_aborted_, false)) return false;
    const auto result = waiters_.wait(waiting, limit);
    if (result == exec::WaitResult::notified || is_over(until) || executor.clock().now() < *limit) continue;
    throw_timeout(timeout, waiting);
  }
  return true;
}

// A timeout is thrown here, not only thrown again, so that reports know where the rank waited.
void RankWork::throw_failure() {
  note_that_it_is_known();
  if (!timed_out_) std::rethrow_exception(exception_);
  try {
    std::rethrow_exception(exception_);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error);
  }
}

TimeoutError RankWork::timeout_error(std::chrono::milliseconds timeout, const exec::Observer& waiting) const {
  const auto missing = waiting.waits_for();
  const auto why = missing.empty() ? std::string("all ranks are there, the transfer takes longer")
                                   : "missing ranks: " + rank_numbers(missing);
  return {fmt::format("{}: Timed out waiting {}ms of virtual time; {}", waiting.call(), timeout.count(), why),
          group().name, sequence_, missing};
}

void RankWork::throw_timeout(std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  gave_up_ = true;
  exec::this_rank::note_given_up(waiting);
  owner_->note_error(rank_, c10d::ErrorType::TIMEOUT);
  mark_result();
  try {
    throw timeout_error(timeout, waiting);
  } catch (...) {
    timeout_ = std::current_exception();
    throw;
  }
}

void RankWork::abort() {
  asked_ = true;
  if (!incomplete()) return;
  if (!is_point_to_point(operation.type)) return cancel();
  wait_aborted_ = true;
  waiters_.notify_all();
}

void RankWork::cancel() {
  asked_ = true;
  if (!incomplete()) return;
  const auto self = c10::intrusive_ptr<RankWork>::reclaim_copy(this);  // the meeting may have held the last one
  owner_->note_error(rank_, c10d::ErrorType::COMM_ERROR);
  if (meeting_ != nullptr) meeting_->withdraw(*this);
  fail(std::make_exception_ptr(
      CommError(fmt::format("{} was aborted", title_of(*this)), group().name, sequence_, {global_rank()})));
}

c10::intrusive_ptr<c10::ivalue::Future> RankWork::getFuture() {
  asked_ = true;
  if (future_ == nullptr) {
    static const c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
    future_ = c10::make_intrusive<c10::ivalue::Future>(type, devices_of(operation));
    if (incomplete() && owner_->closed()) {
      future_->setError(
          std::make_exception_ptr(CommError(title_of(*this) + ": the world is over", group().name, sequence_, {})));
    } else if (state_ != State::pending) {
      mark_futures();
    }
  }
  return future_;
}

c10::intrusive_ptr<c10::ivalue::Future> RankWork::getFutureResult() {
  asked_ = true;
  if (result_future_ == nullptr) {
    result_future_ = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
    if (state_ != State::pending || gave_up_) mark_result();
  }
  return result_future_;
}

void RankWork::mark_futures() {
  std::optional<c10::StreamGuard> on_stream;
  if (operation.end != nullptr) on_stream.emplace(operation.end->stream());
  note_that_it_is_known();
  mark_result();
  if (future_ == nullptr || future_->completed()) return;
  if (exception_ != nullptr) {
    future_->setError(exception_);
  } else {
    future_->markCompleted(c10::IValue(result()));
  }
}

void RankWork::mark_result() {
  if (result_future_ == nullptr || result_future_->completed()) return;
  auto result = c10d::WorkResult::SUCCESS;
  if (gave_up_ || timed_out_) result = c10d::WorkResult::TIMEOUT;
  if (exception_ != nullptr && !timed_out_) result = c10d::WorkResult::COMM_ERROR;
  result_future_->markCompleted(c10::IValue(static_cast<std::int64_t>(result)));
}

std::shared_ptr<c10d::WorkInfo> RankWork::info() const {
  using Clock = std::chrono::steady_clock;
  const auto at = [](VirtualTime time) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(time.time_since_epoch()));
  };
  return std::make_shared<c10d::WorkInfo>(operation.type, sequence_, at(started_), at(completed_at_),
                                          completed_at_ - started_);
}

float RankWork::getDuration() const {
  if (operation.end != nullptr) {
    if (const auto measured = operation.end->milliseconds()) return *measured;
  }
  TORCH_CHECK(state_ == State::completed, "getDuration() may only be called when the work has completed");
  return std::chrono::duration<float, std::milli>(completed_at_ - started_).count();
}

std::string RankWork::describe() const {
  return meeting_ != nullptr ? meeting_->describe(*this) : title_of(*this) + " (the world is over)";
}

std::vector<int> RankWork::waits_for() const {
  return meeting_ != nullptr ? meeting_->waits_for(*this) : std::vector<int>{};
}

std::string title_of(const RankWork& work) { return title_of(work.operation, work.getSequencenumber(), work.group()); }

}  // namespace rehearse::comm
