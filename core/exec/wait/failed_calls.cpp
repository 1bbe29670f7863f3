// SPDX-License-Identifier: BSD-3-Clause
// Delays a rank's next call after one that has failed.
#include <cstddef>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include <rehearse_internal/exec/this_rank.h>

#include "exec/executor/failed_calls.h"
#include "exec/executor/world_outcome.h"
#include "exec/executor/world_parts.h"
#include "suspension.h"

namespace rehearse::exec {
namespace {

std::size_t kind_of(this_rank::CallOn on) noexcept { return static_cast<std::size_t>(on); }

void count_failure(Fiber& fiber, const FailedCalls::Call& call) {
  auto& world = *fiber.world;
  const FixedObserver after_failure("a call after one that failed");
  if (world.outcome.ended_for(fiber)) {
    // A call that fails before it blocks does not notice that the world has ended. A loop that catches such failures
    // would never end, so end the fiber here.
    if (std::uncaught_exceptions() == 0) abort_wait(fiber, after_failure);
    return;
  }
  // In real time, failed calls take time by themselves.
  if (world.clock.passes_by_itself()) return;
  auto& failed = world.failed_calls;
  const auto now = world.clock.now();
  if (!failed.count(fiber.rank, now)) {
    world.outcome.note_failing_loop(fiber.rank, failed.last_error());
    world.outcome.end(Ending::livelock,
                      fmt::format("{} calls in a row failed while nothing else happened", FailedCalls::kMost));
    abort_wait(fiber, after_failure);
  }
  failed.note_error(nullptr);  // the next call's error may be unknown
  if (call.began == now) {
    this_rank::sleep_for(failed.cost(now, world.options.poll_cost), "a call after one that failed");
  }
}

}  // namespace

namespace this_rank {

void begin_call(CallOn on) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return;
  auto& call = fiber->world->failed_calls.last(fiber->rank, kind_of(on));
  if (call.fiber == fiber->id) [[unlikely]]
    count_failure(*fiber, call);
  call = {fiber->id, fiber->world->clock.now()};
}

void end_call(CallOn on) noexcept {
  if (Fiber* const fiber = current_fiber()) fiber->world->failed_calls.last(fiber->rank, kind_of(on)) = {};
}

void fail_call(const std::exception_ptr& error, CallOn on) noexcept {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return;
  auto& failed = fiber->world->failed_calls;
  failed.keep_error(fiber->rank, error);
  auto& call = failed.last(fiber->rank, kind_of(on));
  if (call.fiber != fiber->id) return;
  if (call.began == fiber->world->clock.now()) return failed.note_error(error);
  call = {};
}

void keep_error(const std::exception_ptr& error) {
  if (Fiber* const fiber = current_fiber()) fiber->world->failed_calls.keep_error(fiber->rank, error);
}

std::vector<std::exception_ptr> errors_of_last_calls() {
  const Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return {};
  return fiber->world->failed_calls.errors_of(fiber->rank);
}

}  // namespace this_rank
}  // namespace rehearse::exec
