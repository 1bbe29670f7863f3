// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "fiber.h"

namespace rehearse::exec {

// While it lives, this thread runs code that real threads share with it on behalf of `fiber` (an OpenMP region): it
// cannot switch to another fiber, since the others' state is in the thread, and blocking functions are libc's own. In
// the fiber's own thread as in those that help it.
class NativeSection {
 public:
  explicit NativeSection(Fiber& fiber) noexcept
      : current_before_(std::exchange(t_current_fiber, nullptr)),
        native_before_(std::exchange(t_native_fiber, &fiber)) {}
  NativeSection(const NativeSection&) = delete;
  NativeSection& operator=(const NativeSection&) = delete;
  ~NativeSection() {
    t_current_fiber = current_before_;
    t_native_fiber = native_before_;
  }

  // For a fiber that ends in the middle of one, and will not come back: the fiber, which is current again. Null where
  // this thread is not the fiber's own, or in none.
  static Fiber* abandon() noexcept {
    if (t_native_fiber == nullptr || RankExecutor::current() == nullptr) return nullptr;
    t_current_fiber = std::exchange(t_native_fiber, nullptr);
    return t_current_fiber;
  }

 private:
  Fiber* const current_before_;
  Fiber* const native_before_;
};

}  // namespace rehearse::exec
