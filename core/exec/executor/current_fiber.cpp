// SPDX-License-Identifier: BSD-3-Clause
#include "current_fiber.h"

#include <boost/fiber/context.hpp>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {

void CurrentFiber::open() {
  REHEARSE_CHECK(!is_open(), is_open());
  host_ = boost::fibers::context::active();
  host_asan_.set_bounds_of_this_thread();
  native_ = NativeState::Addresses::of_this_thread();
  host_image_ = std::make_unique<std::byte[]>(state_.image_bytes());
}

void CurrentFiber::switch_state(Fiber* to) noexcept {
  if (current_ == to) return;
  auto* const from_image = current_ != nullptr ? current_->image() : host_image_.get();
  auto* const to_image = to != nullptr ? to->image() : host_image_.get();
  auto& from_native = current_ != nullptr ? current_->native : host_native_;
  auto& to_native = to != nullptr ? to->native : host_native_;
  state_.exchange(from_image, to_image);
  NativeState::exchange(native_, from_native, to_native);
  current_ = to;
  t_current_fiber = to;
}

// Does everything but the jump: the caller must resume the returned context.
REHEARSE_LEAVES_STACK [[gnu::always_inline]] inline boost::fibers::context* CurrentFiber::change_to(
    Fiber* next) noexcept {
  Fiber* const from = current_;
  // If the program uses a primitive of Boost.Fiber, the fiber suspends without a call to us, and still counts as
  // running.
  if (from != nullptr && from->state == Fiber::State::running) from->state = Fiber::State::blocked;
  switch_state(next);
  AsanStack& to_stack = next != nullptr ? next->asan : host_asan_;
  if (Fiber* const ended = std::exchange(ended_now_, nullptr)) {
    AsanStack::start_switch(ended->asan, to_stack, true);
  } else {
    AsanStack::start_switch(from != nullptr ? from->asan : host_asan_, to_stack, false);
  }
  if (next == nullptr) return host_;
  require_state(*next, Fiber::State::runnable, "CurrentFiber::change_to()");
  next->state = Fiber::State::running;
  return next->context;
}

REHEARSE_LEAVES_STACK boost::fibers::context* CurrentFiber::next_context(Fiber* next) noexcept {
  return change_to(next);
}

// Does not use boost::fibers::context::suspend(), which reaches pick_next() by a longer path. A thousand stacks do not
// fit into the cache, so every frame and every line of a context that a switch touches counts.
REHEARSE_LEAVES_STACK void CurrentFiber::switch_from(Fiber& fiber, Fiber* next) noexcept {
  fiber.suspended_at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  change_to(next)->resume();
  fiber.asan.enter();
}

REHEARSE_LEAVES_STACK void CurrentFiber::give_to(Fiber& next) noexcept {
  REHEARSE_CHECK(is_open() && current_ == nullptr, next.rank, next.id);
  change_to(&next)->resume();
  host_asan_.enter();
}

void CurrentFiber::end(Fiber& fiber) noexcept {
  REHEARSE_CHECK(current_ == &fiber && ended_now_ == nullptr, fiber.rank, fiber.id);
  switch_state(nullptr);
  ended_now_ = &fiber;
}

}  // namespace rehearse::exec
