// SPDX-License-Identifier: BSD-3-Clause
// How a world ends.
#include <stdexcept>

#include <boost/fiber/context.hpp>

#include <rehearse_internal/exec/throw_site.h>

#include "exec/call_site/failure_text.h"
#include "executor_impl.h"

namespace rehearse::exec {

void RankExecutor::Impl::finish_world() {
  while (!runnable_.empty()) resume_fibers();
  // Notes first, unwinding after: destructors must not change what the report says.
  const bool note = outcome.ended_early();
  for (Fiber* const fiber : fibers_.all()) {
    if (note && fiber->state == Fiber::State::blocked) outcome.note_blocked(*fiber, fiber->observer);
  }
  pollers.forget();
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

void RankExecutor::Impl::terminate(Fiber& fiber) {
  // A noexcept function of the user's is no place to carry RankAborted through: that is not a failure of its own.
  if (fiber.times_aborted == 0) {
    if (const auto error = std::current_exception()) {
      record_failure(fiber, error, last_throw());
    } else {
      const auto text = terminate_text(nullptr);
      record_failure(fiber, std::make_exception_ptr(std::runtime_error(text)), CallSite::capture());
    }
    if (fiber.is_main()) outcome.note_end_of_rank(fiber.rank, RankEnd::failed);
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
