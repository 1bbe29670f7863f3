// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <rehearse_internal/exec/rank_state.h>

#include "exec/fiber/fiber.h"

namespace boost::fibers {
class context;
}

namespace rehearse::exec {

// Who runs on this thread: one fiber, or the scheduler's own context ("the host", the thread's main context, in which
// run() was called). It changes hands with everything that belongs to a fiber: library state, what the C++ run-time
// keeps, AddressSanitizer's notion of the stack.
class CurrentFiber {
 public:
  explicit CurrentFiber(RankState& state) noexcept : state_(state) {}
  CurrentFiber(const CurrentFiber&) = delete;
  CurrentFiber& operator=(const CurrentFiber&) = delete;

  // Makes the calling context the host. Once, on the thread's main context.
  void open();
  bool is_open() const noexcept { return host_ != nullptr; }

  // Null: the host.
  Fiber* current() const noexcept { return current_; }
  // For the debugger, which reads it.
  Fiber* const* place_of_current() const noexcept { return &current_; }
  AsanStack& stack_of_current() noexcept { return current_ != nullptr ? current_->asan : host_asan_; }

  // From the running fiber to `next`, or to the host (null). Returns when the fiber runs again.
  void switch_from(Fiber& fiber, Fiber* next) noexcept;

  // From the host. Returns when no fiber can run.
  void give_to(Fiber& next) noexcept;

  // For Boost.Fiber, which takes the running context off the thread and resumes what it is given.
  boost::fibers::context* next_context(Fiber* next) noexcept;

  // The running fiber has ended, and only its last switch is left: its state goes now.
  void end(Fiber& fiber) noexcept;

 private:
  boost::fibers::context* change_to(Fiber* next) noexcept;
  void switch_state(Fiber* to) noexcept;

  RankState& state_;
  Fiber* current_ = nullptr;
  Fiber* ended_now_ = nullptr;  // on its way out of its last switch

  boost::fibers::context* host_ = nullptr;
  std::unique_ptr<std::byte[]> host_image_;
  NativeState host_native_;
  NativeState::Place native_;  // of the thread that runs
  AsanStack host_asan_;
};

}  // namespace rehearse::exec
