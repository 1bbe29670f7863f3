// SPDX-License-Identifier: BSD-3-Clause
#include "checked_work.h"

#include <utility>

#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/rank_note.h>

namespace rehearse::real {
namespace {

using Future = c10::ivalue::Future;

std::exception_ptr error_of(const BarrierFailed& failed) {
  if (failed.is_timeout)
    return std::make_exception_ptr(TimeoutError(failed.why, failed.name, failed.sequence, failed.ranks));
  return std::make_exception_ptr(CommError(failed.why, failed.name, failed.sequence, failed.ranks));
}

class AwaitedWork final : public AwaitedCall {
 public:
  explicit AwaitedWork(c10::intrusive_ptr<CheckedWork> work) : work_(std::move(work)) {}
  void go(const Go& go) override { work_->go(go.source); }
  void fail(const BarrierFailed& failed) override { work_->fail(error_of(failed)); }
  void stop(const std::exception_ptr& why) override { work_->stop(why); }

 private:
  const c10::intrusive_ptr<CheckedWork> work_;
};

c10d::WorkResult result_of(const std::exception_ptr& error) {
  if (error == nullptr) return c10d::WorkResult::SUCCESS;
  try {
    std::rethrow_exception(error);
  } catch (const TimeoutError&) {
    return c10d::WorkResult::TIMEOUT;
  } catch (...) {
    return c10d::WorkResult::COMM_ERROR;
  }
}

}  // namespace

CheckedWork::CheckedWork(Session& session, CallJournal& journal, int rank, comm::Operation call, std::string title,
                         CallJournal::Entry entry, std::uint64_t sequence, CarryOut carry_out)
    : c10d::Work(rank, call.type),
      session_(session),
      journal_(journal),
      call_(std::move(call)),
      title_(std::move(title)),
      entry_(entry),
      sequence_(sequence),
      carry_out_(std::move(carry_out)) {}

AwaitedCallPtr CheckedWork::awaited() {
  return c10::make_intrusive<AwaitedWork>(c10::intrusive_ptr<CheckedWork>::reclaim_copy(this));
}

void CheckedWork::go(int source) {
  journal_.started(entry_);
  c10::intrusive_ptr<c10d::Work> inner;
  try {
    inner = std::exchange(carry_out_, nullptr)(source);
  } catch (...) {
    return complete(std::current_exception());
  }
  session_.change([&] {
    inner_ = inner;
    source_ = source;
    gone_ = true;
  });
  session_.below().begin();
  if (inner == nullptr) return complete(nullptr);
  follow(inner);
}

// Gloo's sends and receives have no futures, so whoever waits for them must wait in gloo.
void CheckedWork::follow(const c10::intrusive_ptr<c10d::Work>& inner) {
  c10::intrusive_ptr<Future> future;
  try {
    future = inner->getFuture();
  } catch (const c10::Error&) {
    session_.change([this] { follows_inner_ = false; });
    return;
  }
  future->addCallback([self = c10::intrusive_ptr<CheckedWork>::reclaim_copy(this)](Future& done) {
    self->complete(done.hasError() ? done.exception_ptr() : nullptr);
  });
}

void CheckedWork::fail(const std::exception_ptr& error) { complete(error); }

void CheckedWork::stop(const std::exception_ptr& why) { complete(why, /*is_own=*/false); }

void CheckedWork::complete(const std::exception_ptr& error, bool is_own) {
  bool first = false;
  bool was_gone = false;
  session_.change([&] {
    first = !std::exchange(over_, true);
    if (first) error_ = error;
    // Record this before any waiting thread goes on, because the rank may end its process at once.
    if (first && error == nullptr) journal_.completed(entry_, title_);
    if (first && error != nullptr && is_own) journal_.failed(entry_);
    was_gone = gone_;
  });
  if (!first) return;
  if (was_gone) session_.below().end();
  mark();
}

// Completes the futures that somebody has asked for. complete() runs this in the context in which the call ended,
// because the current streams of that context come after the call. If somebody asks for a future later, this runs in
// that caller's context.
void CheckedWork::mark() {
  comm::WorkFutures futures;
  std::exception_ptr error;
  session_.change([&] {
    futures = futures_;
    error = error_;
  });
  if (futures.has_outputs() && !outputs_are_marked_.test_and_set()) futures.mark_outputs(call_, error);
  if (futures.has_result() && !result_is_marked_.test_and_set()) futures.mark_result(result_of(error));
}

bool CheckedWork::isCompleted() {
  c10::intrusive_ptr<c10d::Work> inner;
  bool over = false;
  session_.change([&] {
    over = over_;
    inner = follows_inner_ ? nullptr : inner_;
  });
  if (over || inner == nullptr || !inner->isCompleted()) return over;
  complete(inner->exception());
  return true;
}

bool CheckedWork::incomplete() const {
  bool over = false;
  session_.change([&] { over = over_; });
  return !over;
}

bool CheckedWork::isSuccess() const { return exception() == nullptr; }

std::exception_ptr CheckedWork::exception() const {
  std::exception_ptr error;
  session_.change([&] { error = error_; });
  return error;
}

int CheckedWork::sourceRank() const {
  int source = -1;
  session_.change([&] { source = source_; });
  return source;
}

std::vector<at::Tensor> CheckedWork::result() { return {call_.outputs.begin(), call_.outputs.end()}; }

void CheckedWork::throw_timeout(std::chrono::milliseconds limit) const {
  throw TimeoutError(fmt::format("{}: Timed out waiting {}ms", title_, limit.count()), "", sequence_, {});
}

bool CheckedWork::wait(std::chrono::milliseconds timeout) {
  const auto limit = timeout.count() > 0 ? timeout : call_.timeout;
  std::optional<VirtualDuration> left;
  if (limit.count() > 0) {
    const VirtualTime now = journal_.now();
    left = later(timeout.count() > 0 ? now : entry_.created, limit) - now;
  }
  return wait_for(left, limit);
}

// `limit`: for the error text if the time runs out.
bool CheckedWork::wait_for(std::optional<VirtualDuration> left, std::chrono::milliseconds limit) {
  const RankNote::Wait noted(title_);
  if (!session_.wait([this] { return over_ || (gone_ && !follows_inner_); }, left)) {
    session_.require_running();
    throw_timeout(limit);
  }
  c10::intrusive_ptr<c10d::Work> inner;
  std::exception_ptr error;
  bool over = false;
  session_.change([&] {
    inner = inner_;
    error = error_;
    over = over_;
  });
  if (error != nullptr) session_.below().throw_failure(error);
  if (inner == nullptr) return true;
  try {
    // For gloo's sends and receives, inner->wait() waits for the end. Any other Work below has ended by now, and
    // inner->wait() only orders device streams.
    const Session::ForeignWait waiting(session_, [inner, over] {
      if (!over) inner->abort();
    });
    if (!inner->wait()) {
      session_.require_running();
      return false;
    }
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    complete(std::current_exception());
    session_.below().throw_failure(std::current_exception());
  }
  if (!over) complete(nullptr);
  return true;
}

void CheckedWork::abort() {
  c10::intrusive_ptr<c10d::Work> inner;
  session_.change([&] { inner = inner_; });
  if (inner != nullptr) inner->abort();
}

c10::intrusive_ptr<Future> CheckedWork::getFuture() {
  c10::intrusive_ptr<Future> future;
  bool over = false;
  session_.change([&] {
    future = futures_.outputs(call_);
    over = over_;
  });
  if (over) mark();
  return future;
}

c10::intrusive_ptr<Future> CheckedWork::getFutureResult() {
  c10::intrusive_ptr<Future> future;
  bool over = false;
  session_.change([&] {
    future = futures_.result();
    over = over_;
  });
  if (over) mark();
  return future;
}

}  // namespace rehearse::real
