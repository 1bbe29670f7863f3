// SPDX-License-Identifier: BSD-3-Clause
// How a world ends, and how its fibers meet that.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rehearse/exec/interrupt.h>
#include <rehearse/exec/signal_io.h>
#include <rehearse/exec/throw_site.h>

#include "executor_impl.h"

namespace rehearse::exec {
namespace {

int g_forked_by = -1;  // in a process that a rank has forked

}  // namespace

void RankExecutor::Impl::stop(Ending ending, std::string reason) noexcept {
  if (ending_) return;
  ending_ = true;
  outcome_.ending = ending;
  outcome_.stop_reason = std::move(reason);
  outcome_.end_time = clock.now();
  // Cleared at the first rest after progress: what is left led to this, also where unwinding has done things since.
  if (hang_.empty()) return;
  outcome_.hang = std::move(hang_);
  outcome_.hang_began = hang_began_;
}

void RankExecutor::Impl::leave_if_forked() const noexcept {
  if (getpid() == process) return;
  char line[200];
  const auto end = fmt::format_to_n(line, sizeof line,
                                    "rehearse: a process that rank {} forked went on in the rank's body, which is not "
                                    "its own: it may call exec or _exit, and nothing that waits\n",
                                    g_forked_by);
  write_at_once(STDERR_FILENO, line, std::min(end.size, sizeof line));
  constexpr int kInternalError = 70;
  for (;;) syscall(SYS_exit_group, kInternalError);
}

void note_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    const Fiber* const fiber = current_fiber();
    if (fiber == nullptr) return;
    g_forked_by = fiber->rank;
    request_interrupt();  // seen at the next switch
  });
  static_cast<void>(registered);
}

void RankExecutor::Impl::finish_world() {
  while (!runnable_.empty()) resume_fibers();
  // Notes first, unwinding after: destructors must not change what the report says.
  const bool note = outcome_.ending != Ending::all_returned;
  for (Fiber* const fiber : fibers_.all()) {
    if (note && fiber->state == Fiber::State::blocked) note_blocked(*fiber, fiber->observer);
  }
  pollers_.clear();
  for (std::size_t id = 0; id < fibers_.all().size(); ++id) {
    Fiber& fiber = fibers_[id];
    if (fiber.state != Fiber::State::blocked) continue;
    fiber.abort = true;
    ++fiber.end_calls;
    make_runnable(fiber);
    resume_fibers();
  }
  // A wait of Boost.Fiber's own takes a wake-up for a spurious one and sleeps again: nothing can unwind it.
  for (Fiber* const fiber : fibers_.all()) {
    if (fiber->state != Fiber::State::blocked || fiber->observer != nullptr) continue;
    fiber->state = Fiber::State::ended;
    fiber->context->worker_unlink();
    --alive_;
    if (fiber->is_main()) --mains_alive_;
  }
}

void RankExecutor::Impl::note_blocked(Fiber& fiber, const Observer* observer) {
  if (fiber.blocked_entry >= 0) return;
  fiber.blocked_entry = static_cast<int>(outcome_.blocked.size());
  outcome_.blocked.push_back(describe(fiber, observer));
  outcome_.blocked.back().was_blocked = fiber.state == Fiber::State::blocked;
}

void RankExecutor::Impl::note_where(Fiber& fiber, const Observer* observer) {
  if (outcome_.ending == Ending::all_returned) return;
  note_blocked(fiber, observer);
  BlockedFiber& entry = outcome_.blocked[static_cast<std::size_t>(fiber.blocked_entry)];
  if (!entry.where.empty()) return;
  entry.where = CallSite::capture();
  entry.unwinding = unwinding();
}

void RankExecutor::Impl::note_where_it_hung(Fiber& fiber, const Observer& observer) {
  if (!outcome_.hang.empty()) note_where(fiber, &observer);
}

void RankExecutor::Impl::meet_the_end(Fiber& fiber, const Observer* observer) {
  note_where(fiber, observer);
  // A loop that tries again whatever it catches would never end.
  constexpr std::uint32_t kTimesAbortedMax = 1'000;
  if (std::uncaught_exceptions() > 0 || fiber.times_aborted == kTimesAbortedMax) leave_behind(fiber);
  ++fiber.times_aborted;
  throw RankAborted(outcome_.stop_reason.empty() ? "the world has ended" : outcome_.stop_reason);
}

bool RankExecutor::Impl::linger(Fiber& fiber, const Observer& observer) {
  // The first call to unwind has come to every fiber before the second comes to any.
  if (fiber.end_calls >= 2) return false;
  note_where(fiber, &observer);
  fiber.observer = &observer;
  fiber.state = Fiber::State::blocked;
  suspend(fiber);
  fiber.observer = nullptr;
  return true;
}

void RankExecutor::Impl::terminate(Fiber& fiber) {
  // A noexcept function of the user's is no place to carry RankAborted through: that is not a failure of its own.
  if (fiber.times_aborted == 0) {
    if (const auto error = std::current_exception()) {
      record_failure(fiber, error, last_throw());
    } else {
      constexpr const char* kText = "std::terminate() was called (as a std::thread does that ends before its join())";
      record_failure(fiber, std::make_exception_ptr(std::runtime_error(kText)), CallSite::capture());
    }
    if (fiber.is_main()) outcome_.ranks[static_cast<std::size_t>(fiber.rank)] = RankEnd::failed;
  }
  leave_behind(fiber);
}

void RankExecutor::Impl::leave_behind(Fiber& fiber) {
  note_ended(fiber);
  fiber.asan.keep();
  // Boost would wait for it at the end of the thread.
  fiber.context->worker_unlink();
  for (;;) fiber.context->suspend();
}

}  // namespace rehearse::exec
