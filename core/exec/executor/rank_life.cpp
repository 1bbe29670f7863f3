// SPDX-License-Identifier: BSD-3-Clause
#include "rank_life.h"

#include <stdexcept>
#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/crash.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/throw_site.h>

#include "exec/call_site/failure_text.h"
#include "exec/fiber/fiber_table.h"
#include "exec/fiber/native_section.h"
#include "exec/interpose/world_state.h"
#include "failed_calls.h"
#include "pollers.h"
#include "rank_table.h"
#include "switcher.h"
#include "world_outcome.h"

namespace rehearse::exec {
namespace {

// Leaves a native section whose destructor an exception has skipped. That happens if our pthread_mutex_lock() throws:
// compilers assume that this function never throws, so they generate no clean-up around its calls.
void leave_native_code() noexcept {
  if (current_fiber() == nullptr) NativeSection::abandon();
}

}  // namespace

void crash_rank(RankExecutor& executor, int rank) { executor.parts().rank_life.crash(rank); }

bool is_alive(RankExecutor& executor, int rank) { return executor.parts().ranks.is_alive(rank); }

RankLife::RankLife(WorldParts& world, const Decisions& decisions, FailureSink& sink)
    : world_(world), decisions_(decisions), sink_(sink), posted_(world.options.ranks) {}

void RankLife::begin_all(const std::function<void(int)>& body) {
  body_ = body;
  try {
    for (int rank = 0; rank < world_.options.ranks; ++rank) begin(rank);
  } catch (...) {
    world_.outcome.end_by_error("a rank could not be created");
  }
}

void RankLife::begin(int rank) {
  world_.ranks.begin(rank, world_.fiber_life.create(rank, 0, [this, rank] { body_(rank); }));
}

// The new incarnation gets a new main fiber, because timers of the previous one may still fire. Its threads get new
// numbers for the same reason.
void RankLife::begin_again(int rank, const std::function<void()>& before) noexcept {
  for (Fiber* const fiber : world_.fibers.all()) {
    if (fiber->active() && fiber->rank == rank) stop_for_ever(*fiber);  // a thread that still unwinds
  }
  posted_.bury(rank);
  try {
    if (before) before();
    world_.ranks.renew(rank);
    world_.interposed.processes.renew(rank);
    world_.outcome.note_end_of_rank(rank, RankEnd::aborted);
    begin(rank);
  } catch (...) {
    world_.outcome.end_by_error("a rank could not begin again");
  }
  world_.idle_policy.note_progress();
  world_.failed_calls.note_progress(-1);
}

void RankLife::run(Fiber& fiber, const std::function<void()>& work) noexcept {
  RankEnd result = RankEnd::aborted;
  try {
    if (!world_.outcome.ended_for(fiber)) {
      work();
      result = RankEnd::returned;
    }
  } catch (const RankAborted&) {
    leave_native_code();
  } catch (...) {
    leave_native_code();
    // If a library turned RankAborted into another exception, that is not the rank's failure.
    if (fiber.times_aborted == 0) record_failure(fiber, std::current_exception(), last_throw());
  }
  if (!fiber.is_main()) return;
  world_.outcome.note_end_of_rank(fiber.rank, world_.ranks.has_failed(fiber.rank) ? RankEnd::failed : result);
}

void RankLife::record_failure(Fiber& fiber, std::exception_ptr error, CallSite thrown_at) {
  // The oracle failed at a choice within the rank's call. That is not the rank's failure, whatever exception arrives
  // here.
  if (decisions_.failure()) return world_.outcome.end(Ending::stopped, "the oracle failed");
  RankFailure failure;
  failure.rank = fiber.rank;
  failure.what = failure_text(error);
  failure.error = std::move(error);
  failure.thrown_at = std::move(thrown_at);
  failure.at = world_.clock.now();
  failure.gave_up = world_.ranks.gave_up(fiber.rank);
  failure.unwinding = unwinding_now();
  world_.outcome.note_failure(failure);
  world_.ranks.note_failed(fiber.rank);
  if (sink_.on_rank_failure(failure) == FailureSink::Verdict::end_world) {
    world_.outcome.end(Ending::rank_failed, failure.what);
    return;
  }
  // An exception that leaves a thread ends the thread's process.
  abort_others(fiber.rank);
}

void RankLife::note_ended(Fiber& fiber) noexcept {
  world_.idle_policy.note_progress();
  if (!fiber.is_main()) return;
  world_.ranks.end(fiber.rank);
  world_.failed_calls.note_progress(fiber.rank);
  world_.outcome.note_time_of_end(fiber.rank);
  abort_others(fiber.rank);
}

// Aborts all fibers of the rank except the running one, as the end of a process ends its other threads.
void RankLife::abort_others(int rank) noexcept {
  posted_.drop(rank);
  if (!world_.ranks.has_had_helpers(rank)) return;
  for (Fiber* const other : world_.fibers.all()) {
    if (!other->active() || other->rank != rank || other == world_.switcher.current_fiber().current()) continue;
    other->abort = true;
    world_.switcher.make_runnable(*other);
  }
}

Fiber& RankLife::spawn(int rank, std::function<void()> work) {
  world_.idle_policy.note_progress();
  if (around_helpers_) work = [this, rank, own = std::move(work)] { around_helpers_(rank, own); };
  return world_.fiber_life.create(rank, world_.ranks.next_helper(rank), std::move(work));
}

void RankLife::post(int rank, std::function<void()> work, bool after_all) {
  if (world_.outcome.ended() || !world_.ranks.is_alive(rank)) return;
  if (posted_.add(rank, std::move(work), after_all)) spawn(rank, [this, rank] { run_posted(rank); });
}

bool RankLife::help_with_posted() {
  if (world_.outcome.ended()) return false;
  const auto rank = posted_.next_stuck();
  if (rank) spawn(*rank, [this, rank = *rank] { run_posted(rank); });
  return rank.has_value();
}

void RankLife::run_posted(int rank) {
  while (auto work = posted_.take(rank)) (*work)();
}

void RankLife::terminate(Fiber& fiber) {
  // RankAborted may have reached a noexcept function of the user's. That is not the rank's failure.
  if (fiber.times_aborted > 0) world_.fiber_life.leave_behind(fiber);
  if (auto error = std::current_exception()) fail_at_once(fiber, std::move(error), last_throw());
  fail_at_once(fiber, std::make_exception_ptr(std::runtime_error(terminate_text(nullptr))), CallSite::capture());
}

void RankLife::fail_at_once(Fiber& fiber, std::exception_ptr error, CallSite thrown_at) {
  record_failure(fiber, std::move(error), std::move(thrown_at));
  if (fiber.is_main()) world_.outcome.note_end_of_rank(fiber.rank, RankEnd::failed);
  world_.fiber_life.leave_behind(fiber);
}

void RankLife::crash(int rank) {
  if (world_.outcome.ended() || !world_.ranks.is_alive(rank)) return;
  posted_.bury(rank);
  Fiber* own = nullptr;
  for (Fiber* const fiber : world_.fibers.all()) {
    if (!fiber->active() || fiber->rank != rank) continue;
    if (fiber == world_.switcher.current_fiber().current()) {
      own = fiber;
    } else {
      stop_for_ever(*fiber);
    }
  }
  world_.idle_policy.note_progress();
  world_.failed_calls.note_progress(-1);
  if (own != nullptr) world_.fiber_life.leave_behind(*own);
}

void RankLife::stop_for_ever(Fiber& fiber) noexcept {
  world_.fiber_life.stop_for_ever(fiber);
  if (!fiber.is_main()) return;
  world_.ranks.end(fiber.rank);
  world_.outcome.note_time_of_end(fiber.rank);
}

void RankLife::unwind_all() {
  Switcher& switcher = world_.switcher;
  REHEARSE_CHECK(world_.outcome.ended() && current_fiber() == nullptr, world_.outcome.ended());
  // First record what the blocked fibers wait for, then unwind the others and them, because what they still do must not
  // change the report.
  if (world_.outcome.ended_early()) note_blocked();
  switcher.unwind();
  while (switcher.any_runnable()) switcher.resume_fibers();
  world_.pollers.forget();
  bool any_woken = false;
  for (std::size_t id = 0; id < world_.fibers.all().size(); ++id) {
    Fiber& fiber = world_.fibers[id];
    if (fiber.state != Fiber::State::blocked) continue;
    fiber.abort = true;
    ++fiber.end_calls;
    switcher.make_runnable(fiber);
    REHEARSE_CHECK(switcher.any_runnable(), fiber.rank, fiber.id, fiber.state);
    any_woken = true;
    switcher.resume_fibers();
  }
  REHEARSE_CHECK(any_woken || world_.fiber_life.alive() == 0, world_.fiber_life.alive());
  // A wait in a Boost.Fiber primitive treats a wake-up as spurious and sleeps again, so nothing can unwind it.
  for (Fiber* const fiber : world_.fibers.all()) {
    if (fiber->state == Fiber::State::blocked && fiber->observer == nullptr) give_up(*fiber);
  }
}

void RankLife::note_blocked() {
  for (Fiber* const fiber : world_.fibers.all()) {
    if (fiber->state == Fiber::State::blocked) world_.outcome.note_blocked(*fiber, fiber->observer);
  }
}

void RankLife::give_up(Fiber& fiber) noexcept {
  world_.fiber_life.give_up(fiber);
  if (fiber.is_main()) world_.ranks.end(fiber.rank);
}

}  // namespace rehearse::exec
