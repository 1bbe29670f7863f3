// SPDX-License-Identifier: BSD-3-Clause
#include "idle_loop.h"

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "exec/fiber/fiber_table.h"
#include "exec/interpose/world_state.h"
#include "exec/time/doorbell.h"
#include "exec/time/patience.h"
#include "fiber_life.h"
#include "pollers.h"
#include "rank_life.h"
#include "switcher.h"
#include "world_outcome.h"

namespace rehearse::exec {

void IdleLoop::step() {
  REHEARSE_CHECK(current_fiber() == nullptr && !world_.switcher.any_runnable() && !world_.outcome.ended(),
                 world_.switcher.any_runnable(), world_.outcome.ended());
  if (world_.fiber_life.release_ended() && world_.switcher.any_runnable()) return;
  hear_threads();
  if (world_.switcher.any_runnable() || world_.rank_life.help_with_posted()) return;
  const IdleFacts known = facts();
  IdleStep step = world_.idle_policy.next(known);
  if (step.moved) world_.outcome.forget_hang();
  if (step.hangs) world_.outcome.note_hang(world_.fibers.all(), step.hung_since.value_or(known.now));
  switch (step.kind) {
    case IdleStep::Kind::poll_again:
      return release_pollers();
    case IdleStep::Kind::let_time_pass:
      return let_time_pass(step, known.any_polls);
    case IdleStep::Kind::end:
      if (step.hangs) world_.outcome.note_loop_of_time_outs();
      return world_.outcome.end(step.end.ending, std::move(step.end.why));
  }
}

void IdleLoop::pass_time() {
  const auto due = world_.timers.next_event();
  REHEARSE_CHECK(current_fiber() == nullptr && due.has_value(), due.has_value());
  const auto time = *due - world_.clock.now();
  world_.patience.note_passed_by_choice(time);
  world_.timers.note_passed(time);
  world_.clock.advance_to(*due);
  fire_due();
}

void IdleLoop::fire_due() {
  if (!is_patient(world_)) {
    world_.timers.fire_due(world_.clock.now());
    return;
  }
  world_.timers.fire_due(world_.clock.now(), [this](std::uint32_t count) {
    return world_.switcher.choose_number(ChoiceKind::equal_timers, count);
  });
}

void IdleLoop::poll() noexcept {
  hear_threads();
  world_.idle_policy.poll();
}

IdleFacts IdleLoop::facts() const {
  return {.now = world_.clock.now(),
          .due = world_.timers.next_due(),
          .any_moves_on = world_.timers.any_moves_on(),
          .any_polls = world_.pollers.any_polls(),
          .any_in_kernel = world_.pollers.any_in_kernel(),
          .any_waits_in_libc = !world_.interposed.outside_waits.empty()};
}

void IdleLoop::release_pollers() {
  world_.pollers.release_all([this](Fiber& fiber) { world_.switcher.make_runnable(fiber); });
}

void IdleLoop::let_time_pass(const IdleStep& step, bool any_polls) {
  world_.patience.note_passed(std::max(step.to - world_.clock.now(), VirtualDuration::zero()));
  world_.clock.advance_to(step.to);
  fire_due();
  if (auto end = world_.idle_policy.time_passed()) world_.outcome.end(end->ending, std::move(end->why));
  if (any_polls && step.poll && !world_.outcome.ended()) release_pollers();
}

// In virtual time, no wait of a rank depends on a thread outside of ranks (see OutsideWait), so threads send no signals
// that matter.
void IdleLoop::hear_threads() noexcept {
  if (!world_.clock.passes_by_itself()) return;
  hear_doorbell();
  world_.interposed.outside_waits.wake_signalled();
}

}  // namespace rehearse::exec
