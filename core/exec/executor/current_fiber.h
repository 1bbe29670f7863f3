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

// The context that runs on this thread: one fiber, or the scheduler's own context ("the host", the thread's main
// context, which called run()). A switch exchanges everything that belongs to a fiber: library state, the state of the
// C++ run-time, AddressSanitizer's notion of the stack.
class CurrentFiber {
 public:
  explicit CurrentFiber(RankState& state) noexcept : state_(state) {}
  CurrentFiber(const CurrentFiber&) = delete;
  CurrentFiber& operator=(const CurrentFiber&) = delete;

  // Makes the calling context the host. Call it once, on the thread's main context.
  void open();
  bool is_open() const noexcept { return host_ != nullptr; }

  // Null if the host runs, or if end() has ended the running fiber.
  Fiber* current() const noexcept { return current_; }
  // The debugger reads the variable at this address.
  Fiber* const* address_of_current() const noexcept { return &current_; }
  AsanStack& stack_of_current() noexcept { return current_ != nullptr ? current_->asan : host_asan_; }

  // Switches from the running fiber to `next`, or to the host (null). Returns when the fiber runs again.
  void switch_from(Fiber& fiber, Fiber* next) noexcept;

  // Switches from the host to `next`. Returns when the host runs again.
  void give_to(Fiber& next) noexcept;

  // For a switch that Boost.Fiber makes itself, because the running context ends or waits in a Boost primitive. Returns
  // the context that Boost.Fiber must resume: that of `next`, or the host (if `next` is null).
  boost::fibers::context* next_context(Fiber* next) noexcept;

  // Ends the running fiber: replaces its state by the host's at once, although its code still runs. The fiber's next
  // switch is its last.
  void end(Fiber& fiber) noexcept;

 private:
  boost::fibers::context* change_to(Fiber* next) noexcept;
  void switch_state(Fiber* to) noexcept;

  RankState& state_;
  Fiber* current_ = nullptr;
  Fiber* ended_now_ = nullptr;  // the fiber that makes its last switch

  boost::fibers::context* host_ = nullptr;
  std::unique_ptr<std::byte[]> host_image_;
  NativeState host_native_;
  NativeState::Addresses native_;  // where this thread keeps the live state
  AsanStack host_asan_;
};

}  // namespace rehearse::exec
