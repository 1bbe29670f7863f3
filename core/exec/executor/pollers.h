// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {

// The suspended fibers that will check their conditions again: at any time (they poll), or after another rank has made
// a system call (they wait in the kernel). Released fibers are removed and become runnable, in the order in which they
// were added.
class Pollers {
 public:
  void add(Fiber& fiber, bool in_kernel) {
    REHEARSE_CHECK(!fiber.polling && fiber.state == Fiber::State::running, fiber.rank, fiber.id, fiber.state);
    fibers_.push_back(&fiber);
    fiber.polling = true;
    fiber.in_kernel = in_kernel;
  }

  // Removes a fiber whose world or rank has ended, or whose rank has crashed. Does nothing if the fiber was released.
  void remove(Fiber& fiber) noexcept {
    if (std::exchange(fiber.polling, false)) std::erase(fibers_, &fiber);
  }

  bool any_in_kernel() const noexcept { return std::ranges::any_of(fibers_, is_in_kernel); }
  bool any_polls() const noexcept { return !std::ranges::all_of(fibers_, is_in_kernel); }

  template <class Wake>
  void release_all(const Wake& wake) {
    for (Fiber* const fiber : fibers_) release(*fiber, wake);
    fibers_.clear();
  }

  template <class Wake>
  void release_in_kernel(const Wake& wake) {
    std::erase_if(fibers_, [&](Fiber* fiber) {
      if (fiber->in_kernel) release(*fiber, wake);
      return fiber->in_kernel;
    });
  }

  // Forgets all fibers: the world has ended, and unwinding wakes them.
  void forget() noexcept { fibers_.clear(); }

 private:
  static bool is_in_kernel(const Fiber* fiber) noexcept { return fiber->in_kernel; }

  template <class Wake>
  static void release(Fiber& fiber, const Wake& wake) {
    REHEARSE_CHECK(fiber.polling && fiber.state == Fiber::State::blocked, fiber.rank, fiber.id, fiber.state);
    fiber.polling = false;
    wake(fiber);
  }

  std::vector<Fiber*> fibers_;
};

}  // namespace rehearse::exec
