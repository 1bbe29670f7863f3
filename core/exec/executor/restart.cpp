// SPDX-License-Identifier: BSD-3-Clause
// Ranks that begin again.
#include "restart.h"

#include <algorithm>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/restart.h>

#include "exec/interpose/world_state.h"

namespace rehearse::exec {

void restart_rank(RankExecutor& executor, int rank, VirtualDuration after, std::function<void()> before) {
  executor.impl().restart(rank, after, std::move(before));
}

bool is_to_begin_again(RankExecutor& executor, int rank) noexcept { return executor.impl().is_to_begin_again(rank); }

WorldHold::WorldHold(RankExecutor& executor) noexcept : executor_(executor) { executor_.impl().hold(); }
WorldHold::~WorldHold() { executor_.impl().let_go(); }

int incarnation(RankExecutor& executor, int rank) noexcept { return executor.impl().incarnation(rank); }

void RankExecutor::Impl::restart(int rank, VirtualDuration after, std::function<void()> before) {
  REHEARSE_CHECK(rank >= 0 && rank < options.ranks, rank, options.ranks);
  if (ending()) return;
  auto& planned = *restarts_.emplace_back(std::make_unique<Restart>(*this, rank, std::move(before)));
  const auto now = clock.now();
  timers.arm(planned, after > VirtualTime::max() - now ? VirtualTime::max() : now + after);
  ++restarts_due_;
}

bool RankExecutor::Impl::is_to_begin_again(int rank) const noexcept {
  return std::any_of(restarts_.begin(), restarts_.end(),
                     [rank](const auto& planned) { return planned->armed() && planned->rank() == rank; });
}

// The new main fiber is another one than the former, whose timers may yet fire. Its threads have other numbers, too.
void RankExecutor::Impl::begin_again(Restart& restart) noexcept {
  --restarts_due_;
  const int rank = restart.rank();
  if (ending() || is_alive(rank)) return;
  auto& owner = ranks_[static_cast<std::size_t>(rank)];
  for (Fiber* const fiber : fibers_.all()) {
    if (fiber->active() && fiber->rank == rank) stop_for_ever(*fiber);  // a thread that still unwinds
  }
  buried_.push_back(std::move(owner.posted));
  try {
    restart.tell();
    Rank next;
    next.fibers = owner.fibers;
    next.incarnation = owner.incarnation + 1;
    owner = std::move(next);
    interposed->processes.renew(rank);
    outcome.note_end_of_rank(rank, RankEnd::aborted);
    create_main(rank);
  } catch (...) {
    error_ = std::current_exception();
    stop(Ending::stopped, "a rank could not begin again");
  }
  idle_policy().note_progress();
  failed_calls.note_progress(-1);
}

void RankExecutor::Impl::call_off_restarts() noexcept {
  for (const auto& planned : restarts_) timers.cancel(*planned);
  restarts_due_ = 0;
}

}  // namespace rehearse::exec
