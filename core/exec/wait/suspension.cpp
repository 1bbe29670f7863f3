// SPDX-License-Identifier: BSD-3-Clause
#include "suspension.h"

#include <exception>

#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/interpreter.h>

#include "exec/executor/fiber_life.h"
#include "exec/executor/rank_life.h"
#include "exec/executor/switcher.h"
#include "exec/executor/world_outcome.h"
#include "exec/executor/world_parts.h"

namespace rehearse::exec {
namespace {

// Limits a loop that retries whatever it catches, which would never end otherwise.
constexpr std::uint32_t kTimesAbortedMax = 1'000;

[[noreturn]] void abort_in(Fiber& fiber, const Observer* observer) {
  auto& world = *fiber.world;
  world.outcome.note_where(fiber, observer);
  const bool cannot_unwind = interpreter() != nullptr || std::uncaught_exceptions() > 0;
  if (cannot_unwind || fiber.times_aborted == kTimesAbortedMax) world.fiber_life.leave_behind(fiber);
  ++fiber.times_aborted;
  const auto& reason = world.outcome.reason();
  throw RankAborted(reason.empty() ? "the world has ended" : reason);
}

}  // namespace

void suspend_blocked(Fiber& fiber, const Observer& observer) {
  if (!suspend_or_end(fiber, observer)) abort_wait(fiber, observer);
}

bool suspend_or_end(Fiber& fiber, const Observer& observer) {
  auto& world = *fiber.world;
  if (world.outcome.ended_for(fiber)) return false;
  fiber.polls = 0;
  fiber.clock_reads = 0;
  if (!fiber.polling) world.idle_policy.note_step();
  fiber.observer = &observer;
  world.switcher.suspend(fiber);
  fiber.observer = nullptr;
  if (world.outcome.hangs() || fiber.blocked_entry >= 0) [[unlikely]]
    world.outcome.note_where_it_hung(fiber, observer);
  return !fiber.abort;
}

void abort_wait(Fiber& fiber, const Observer& observer) { abort_in(fiber, &observer); }

void throw_from_c(Fiber& fiber, const std::exception_ptr& error) {
  if (interpreter() == nullptr) std::rethrow_exception(error);
  fiber.world->rank_life.fail_at_once(fiber, error, CallSite::capture());
}

void yield(Fiber& fiber) {
  auto& world = *fiber.world;
  if (world.outcome.ended_for(fiber)) abort_in(fiber, nullptr);
  world.switcher.give_way(fiber);
  if (world.outcome.ended_for(fiber)) abort_in(fiber, nullptr);
}

bool linger(Fiber& fiber, const Observer& observer) {
  // RankLife::unwind_all() wakes every blocked fiber once before it wakes any fiber a second time. So if it has woken
  // this fiber twice, all other fibers have had their turn to unwind.
  if (fiber.end_calls >= 2) return false;
  auto& world = *fiber.world;
  world.outcome.note_where(fiber, &observer);
  fiber.observer = &observer;
  world.switcher.suspend(fiber);
  fiber.observer = nullptr;
  return true;
}

}  // namespace rehearse::exec
