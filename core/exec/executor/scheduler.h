// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <deque>

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/properties.hpp>

#include <rehearse_internal/exec/check.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {

class Switcher;

struct FiberProperties final : boost::fibers::fiber_properties {
  explicit FiberProperties(boost::fibers::context* context) : fiber_properties(context) {}
  Fiber* fiber = nullptr;  // null: not one of our fibers
};

// Boost.Fiber asks this object for the next fiber on this thread. The object asks the switcher of the current run.
// Without a run, it schedules foreign fibers, which are not ours, first come, first served. The first executor of a
// thread installs this object.
class Scheduler final : public boost::fibers::algo::algorithm_with_properties<FiberProperties> {
 public:
  static Scheduler& of_this_thread();

  // The switcher of the current run; null: no run. The executor of that run sets the pointer; run_others() clears the
  // pointer for a while.
  Switcher* switcher = nullptr;

  // Lets Boost free the stacks of ended fibers, and lets foreign fibers run. Call it on the thread's main context.
  void run_others();

  void awakened(boost::fibers::context* context, FiberProperties& properties) noexcept override;
  boost::fibers::context* pick_next() noexcept override;
  bool has_ready_fibers() const noexcept override { return !foreign_.empty(); }
  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {}
  void notify() noexcept override {}

  // Says to which fiber the next context that becomes ready belongs; null: to none.
  void expect(Fiber* fiber) noexcept {
    REHEARSE_CHECK(fiber == nullptr || expected_ == nullptr, expected_->id);
    expected_ = fiber;
  }

  bool has_foreign() const noexcept { return !foreign_.empty(); }

 private:
  boost::fibers::context* take_dispatcher() noexcept;

  boost::fibers::context* dispatcher_ = nullptr;
  std::deque<boost::fibers::context*> foreign_;  // including the thread's main context
  bool dispatcher_due_ = false;
  Fiber* expected_ = nullptr;
};

}  // namespace rehearse::exec
