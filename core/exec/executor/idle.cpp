// SPDX-License-Identifier: BSD-3-Clause
// What happens when no fiber can run, as the idle policy says: lookers look again, time passes, or the world ends.
#include "exec/interpose/world_state.h"
#include "executor_impl.h"
#include "scheduler.h"

namespace rehearse::exec {
namespace {

constexpr std::size_t kReleaseEndedAt = 8;

}  // namespace

void RankExecutor::Impl::release_pollers() {
  pollers.release_all([this](Fiber& fiber) { make_runnable(fiber); });
}

void RankExecutor::Impl::let_time_pass(const IdleStep& step, bool any_polls) {
  clock.advance_to(step.to);
  timers.fire_due(clock.now());
  if (auto end = idle_policy().time_passed()) stop(end->ending, std::move(end->why));
  if (any_polls && step.look && !ending()) release_pollers();
}

void RankExecutor::Impl::idle() {
  if (ended_since_release_ >= kReleaseEndedAt || scheduler_->has_foreign()) {
    ended_since_release_ = 0;
    scheduler_->run_others();
    if (!runnable_.empty()) return;
  }
  // Asked before: who has ended an errand has brought what there was.
  const bool any_errand = outside != nullptr && outside->any_errand();
  if (outside != nullptr) take_from_outside();
  if (!runnable_.empty() || ending()) return;
  const IdleFacts facts{.now = clock.now(),
                        .due = timers.next_due(),
                        .any_moves_on = timers.any_moves_on(),
                        .any_polls = pollers.any_polls(),
                        .any_in_kernel = pollers.any_in_kernel(),
                        .any_errand = any_errand,
                        .any_waits_in_libc = !interposed->outside_waits.empty()};
  IdleStep step = idle_policy().next(facts);
  if (step.moved) outcome.forget_hang();
  if (step.hangs) outcome.note_hang(fibers_.all(), step.hung_since.value_or(facts.now));
  switch (step.kind) {
    case IdleStep::Kind::look_again:
      return release_pollers();
    case IdleStep::Kind::let_time_pass:
      return let_time_pass(step, facts.any_polls);
    case IdleStep::Kind::end:
      return stop(step.end.ending, std::move(step.end.why));
  }
}

}  // namespace rehearse::exec
