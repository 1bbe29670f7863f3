// SPDX-License-Identifier: BSD-3-Clause
// Who runs next, and how the stage changes hands.
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <rehearse/exec/interrupt.h>

#include "executor_impl.h"

namespace rehearse::exec {

void RankExecutor::Impl::switch_state(Fiber* to) noexcept {
  if (current_ == to) return;
  auto* const from_image = current_ != nullptr ? current_->image() : host_image_.get();
  auto* const to_image = to != nullptr ? to->image() : host_image_.get();
  auto& from_native = current_ != nullptr ? current_->native : host_native_;
  auto& to_native = to != nullptr ? to->native : host_native_;
  state.exchange(from_image, to_image);
  NativeState::exchange(native_, from_native, to_native);
  current_ = to;
  t_current_fiber = to;
}

Fiber* RankExecutor::Impl::choose_next() noexcept {
  if (runnable_.empty()) return nullptr;
  std::uint32_t index = 0;
  if (!ending_) {
    // The watchdog reads it.
    std::atomic_ref(outcome_.switches).store(outcome_.switches + 1, std::memory_order_relaxed);
    if (outcome_.switches > options.steps_max) {
      stop(Ending::step_budget, fmt::format("more than {} switches", options.steps_max));
      return nullptr;
    }
    if (interrupt_requested()) {
      leave_if_forked();
      stop(Ending::interrupted, "interrupted");
      return nullptr;
    }
    try {
      index = decisions.choose(ChoiceKind::next_fiber, runnable_.candidates());
    } catch (...) {
      stop(Ending::stopped, "the oracle failed");
      return nullptr;
    }
  }
  Fiber* const next = &fibers_[runnable_.take(index)];
  next->prefetch();
  if (!ending_) decisions.log().note_step(next->id, clock.now());
  return next;
}

// The caller resumes the context.
REHEARSE_LEAVES_STACK [[gnu::always_inline]] inline boost::fibers::context* RankExecutor::Impl::change_to(
    Fiber* next) noexcept {
  Fiber* const from = current_;
  // A Boost.Fiber primitive of the user's suspends without telling us.
  if (from != nullptr && from->state == Fiber::State::running) from->state = Fiber::State::blocked;
  switch_state(next);
  AsanStack& to_stack = next != nullptr ? next->asan : host_asan_;
  if (Fiber* const ended = std::exchange(ended_now_, nullptr)) {
    AsanStack::leave(ended->asan, to_stack, true);
  } else {
    AsanStack::leave(from != nullptr ? from->asan : host_asan_, to_stack, false);
  }
  if (next == nullptr) return host_;
  next->state = Fiber::State::running;
  return next->context;
}

REHEARSE_LEAVES_STACK boost::fibers::context* RankExecutor::Impl::pick_next() noexcept {
  return change_to(choose_next());
}

// Not through boost::fibers::context::suspend(), which comes back to pick_next() by a longer way: a thousand stacks do
// not fit the cache, so every frame and every line of a context that a switch touches counts.
REHEARSE_LEAVES_STACK void RankExecutor::Impl::leave_for(Fiber& fiber, Fiber* next) noexcept {
  fiber.suspended_at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  change_to(next)->resume();
  fiber.asan.enter();
}

void RankExecutor::Impl::suspend(Fiber& fiber) noexcept { leave_for(fiber, choose_next()); }

void RankExecutor::Impl::make_runnable(Fiber& fiber) noexcept {
  if (fiber.state != Fiber::State::blocked) return;
  fiber.state = Fiber::State::runnable;
  runnable_.push(fiber.id);
}

void RankExecutor::Impl::yield(Fiber& fiber) {
  if (must_end(fiber)) meet_the_end(fiber, nullptr);
  give_way(fiber);
  if (must_end(fiber)) meet_the_end(fiber, nullptr);
}

void RankExecutor::Impl::give_way(Fiber& fiber) {
  if (must_end(fiber)) return;
  fiber.looks = 0;
  fiber.clock_reads = 0;
  note_step();
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
    runnable_.take(runnable_.size() - 1);
    fiber.state = Fiber::State::running;
  } else if (next == &fiber) {
    fiber.state = Fiber::State::running;
  } else {
    leave_for(fiber, next);
  }
}

REHEARSE_LEAVES_STACK void RankExecutor::Impl::resume_fibers() {
  Fiber* const next = choose_next();
  if (next == nullptr) return;  // the choice ended the world
  change_to(next)->resume();
  host_asan_.enter();
}

}  // namespace rehearse::exec
