// SPDX-License-Identifier: BSD-3-Clause
// Ranks that never run again.
#include <rehearse_internal/exec/crash.h>

#include <utility>

#include <boost/fiber/context.hpp>

#include "executor_impl.h"

namespace rehearse::exec {

void leave_queue(Fiber& fiber) noexcept;  // a friend of WaitQueue's

void crash_rank(RankExecutor& executor, int rank) { executor.impl().crash(rank); }

bool is_alive(RankExecutor& executor, int rank) { return executor.impl().is_alive(rank); }

bool RankExecutor::Impl::is_alive(int rank) const noexcept {
  const Fiber* const main = ranks_[static_cast<std::size_t>(rank)].main;
  return main != nullptr && main->active();
}

// It leaves whatever might run it again: the run queue, the queue that it waits in, the pollers. Timers on its stack
// may still fire: they find that it has ended.
void RankExecutor::Impl::stop_for_ever(Fiber& fiber) noexcept {
  if (fiber.state == Fiber::State::runnable) runnable_.take(runnable_.index_of(fiber.id));
  if (fiber.in_queue) leave_queue(fiber);
  pollers.remove(fiber);
  fiber.state = Fiber::State::ended;
  fiber.asan.keep();
  fiber.context->worker_unlink();  // Boost would wait for it at the end of the thread
  --alive_;
  if (!fiber.is_main()) return;
  --mains_alive_;
  outcome.note_time_of_end(fiber.rank);
}

void RankExecutor::Impl::crash(int rank) {
  if (ending() || !is_alive(rank)) return;
  auto& owner = ranks_[static_cast<std::size_t>(rank)];
  buried_.push_back(std::exchange(owner.posted, {}));
  Fiber* own = nullptr;
  for (Fiber* const fiber : fibers_.all()) {
    if (!fiber->active() || fiber->rank != rank) continue;
    if (fiber == stage_.current()) {
      own = fiber;
    } else {
      stop_for_ever(*fiber);
    }
  }
  idle_policy().note_progress();
  failed_calls.note_progress(-1);
  if (own != nullptr) leave_behind(*own);
}

}  // namespace rehearse::exec
