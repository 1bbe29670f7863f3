// SPDX-License-Identifier: BSD-3-Clause
// Who runs next.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/interrupt.h>

#include "executor_impl.h"
#include "forks.h"

namespace rehearse::exec {
namespace {

constexpr const char* kInterrupted = "interrupted";

}  // namespace

bool RankExecutor::Impl::stop_if_interrupted() noexcept {
  if (!interrupt_requested()) return false;
  leave_if_forked(process);
  stop(Ending::interrupted, kInterrupted);
  return true;
}

// Counts the switch that the run does not make, as choose_next() does. InterruptedAgain finds the place by that number.
void RankExecutor::Impl::stop_between_switches() noexcept {
  const bool goes_on = !ending();
  const bool is_the_place =
      outcome.switches() + 1 == interrupted_again_.before_switch && clock.now() == interrupted_again_.at;
  if (is_the_place) stop(Ending::interrupted, kInterrupted);
  if ((stop_if_interrupted() || is_the_place) && goes_on) outcome.count_switch();
}

// The budget's end, the place of an InterruptedAgain, or a look at what comes from outside, whichever comes first:
// switches count up to one number.
void RankExecutor::Impl::set_next_stop(std::uint64_t switches) noexcept {
  const std::uint64_t between = options.switches_between_looks;
  next_stop_ = between == 0 ? options.steps_max : std::min(options.steps_max, switches + between - 1);
  const auto last = interrupted_again_.before_switch;
  if (last > 0) next_stop_ = std::min(next_stop_, last - 1);
}

bool RankExecutor::Impl::pass_stop() noexcept {
  if (outcome.switches() > options.steps_max) {
    stop(Ending::step_budget, fmt::format("more than {} switches", options.steps_max));
    return false;
  }
  if (outcome.switches() == interrupted_again_.before_switch) {
    stop(Ending::interrupted, kInterrupted);
    return false;
  }
  set_next_stop(outcome.switches());
  // As from a timer: what wakes a rank must not be able to switch, nor change what libc tells the one that leaves.
  const int error = errno;
  Fiber* const fiber = std::exchange(t_current_fiber, nullptr);
  if (outside != nullptr) take_from_outside();
  idle_policy().look();
  t_current_fiber = fiber;
  errno = error;
  return true;
}

Fiber* RankExecutor::Impl::choose_next() noexcept {
  if (runnable_.empty()) return nullptr;
  std::uint32_t index = 0;
  if (!ending()) {
    if (outcome.count_switch() > next_stop_) [[unlikely]] {
      if (!pass_stop()) return nullptr;
    }
    if (stop_if_interrupted()) return nullptr;
    try {
      index = decisions.choose(ChoiceKind::next_fiber, runnable_.candidates());
    } catch (...) {
      stop(Ending::stopped, "the oracle failed");
      return nullptr;
    }
  }
  Fiber* const next = &fibers_[runnable_.take(index)];
  next->prefetch();
  if (!ending()) decisions.log().note_step(next->id, clock.now());
  return next;
}

REHEARSE_LEAVES_STACK boost::fibers::context* RankExecutor::Impl::pick_next() noexcept {
  return stage_.next_context(choose_next());
}

void RankExecutor::Impl::suspend(Fiber& fiber) noexcept {
  Fiber* const next = choose_next();
  if (next == &fiber) [[unlikely]] {
    fiber.state = Fiber::State::running;  // a look on the way has found what it waits for
  } else {
    stage_.leave_for(fiber, next);
  }
}

void RankExecutor::Impl::make_runnable(Fiber& fiber) noexcept {
  if (fiber.state != Fiber::State::blocked) return;
  fiber.state = Fiber::State::runnable;
  runnable_.push(fiber.id);
}

void RankExecutor::Impl::give_way(Fiber& fiber) noexcept {
  if (must_end(fiber)) return;
  fiber.looks = 0;
  fiber.clock_reads = 0;
  idle_policy().note_step();
  offer_stage(fiber);
}

void RankExecutor::Impl::preempt(Fiber& fiber) noexcept {
  if (!options.preempt || must_end(fiber) || runnable_.empty()) return;
  offer_stage(fiber);
}

// To all that can run, this fiber among them.
void RankExecutor::Impl::offer_stage(Fiber& fiber) noexcept {
  fiber.state = Fiber::State::runnable;
  runnable_.push(fiber.id);
  Fiber* const next = choose_next();
  if (next == nullptr) {
    // The choice ended the world (the oracle threw, or the step budget is spent): this fiber goes on, to meet the end.
    runnable_.take(runnable_.index_of(fiber.id));
    fiber.state = Fiber::State::running;
  } else if (next == &fiber) {
    fiber.state = Fiber::State::running;
  } else {
    stage_.leave_for(fiber, next);
  }
}

void RankExecutor::Impl::resume_fibers() {
  if (Fiber* const next = choose_next()) stage_.give_to(*next);  // else the choice ended the world
}

}  // namespace rehearse::exec
