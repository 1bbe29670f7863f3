// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/wait_queue.h>

#include <cstdio>
#include <cstdlib>

#include <rehearse/exec/timer_queue.h>

#include "executor_impl.h"

namespace rehearse::exec {

struct WaitQueue::Waiter {
  Waiter(WaitQueue& queue, Fiber& fiber) : queue(queue), fiber(fiber), previous(queue.last_) {
    (previous != nullptr ? previous->next : queue.first_) = this;
    queue.last_ = this;
  }
  ~Waiter() { leave(); }

  void leave() noexcept {
    if (!linked) return;
    linked = false;
    queue.unlink(*this);
  }

  void time_out() noexcept {
    timed_out = true;
    leave();
    make_runnable(fiber);
  }

  WaitQueue& queue;
  Fiber& fiber;
  Waiter* previous;
  Waiter* next = nullptr;
  bool linked = true;
  bool timed_out = false;
};

class WaitQueue::Deadline final : public Timer {
 public:
  Deadline(Waiter& waiter, const Observer& observer, VirtualTime due)
      : waiter_(waiter), pause_(waiter.fiber.is_main() && observer.is_opaque()) {
    timers().arm(*this, due);
  }
  ~Deadline() override { timers().cancel(*this); }

 private:
  // With a primitive that knows of no failure (a condition variable) a rank may just pause, as with a sleep. A helper's
  // is more likely a watchdog's, which would hide every hang.
  bool gives_up() const noexcept override { return !pause_; }
  void fire() override { waiter_.time_out(); }
  TimerQueue& timers() const noexcept { return waiter_.fiber.executor->timers; }

  Waiter& waiter_;
  const bool pause_;
};

WaitQueue::~WaitQueue() {
  if (empty()) return;
  std::fputs("rehearse: a WaitQueue was destroyed while fibers wait in it\n", stderr);
  std::abort();
}

void WaitQueue::unlink(Waiter& waiter) noexcept {
  (waiter.previous != nullptr ? waiter.previous->next : first_) = waiter.next;
  (waiter.next != nullptr ? waiter.next->previous : last_) = waiter.previous;
}

WaitResult WaitQueue::wait(const Observer& observer, std::optional<VirtualTime> deadline) {
  if (const auto result = wait_or_end(observer, deadline)) return *result;
  // Only now, with the waiter out of the queue: a fiber that is left behind never comes back to take it out.
  meet_the_end(require_fiber("WaitQueue::wait()"), observer);
}

std::optional<WaitResult> WaitQueue::wait_or_end(const Observer& observer, std::optional<VirtualTime> deadline) {
  Fiber& fiber = require_fiber("WaitQueue::wait()");
  Waiter waiter(*this, fiber);
  std::optional<Deadline> timer;
  if (deadline) timer.emplace(waiter, observer, *deadline);
  if (!suspend_or_end(fiber, observer)) return std::nullopt;
  return waiter.timed_out ? WaitResult::timed_out : WaitResult::notified;
}

bool WaitQueue::linger(const Observer& observer) {
  Fiber& fiber = require_fiber("WaitQueue::linger()");
  Waiter waiter(*this, fiber);
  return fiber.executor->linger(fiber, observer);
}

bool WaitQueue::notify_one() {
  if (first_ == nullptr) return false;
  Waiter& waiter = *first_;
  waiter.leave();
  waiter.fiber.executor->note_progress();
  make_runnable(waiter.fiber);
  return true;
}

std::size_t WaitQueue::notify_all() {
  std::size_t count = 0;
  while (notify_one()) ++count;
  return count;
}

void WaitQueue::time_out_all() noexcept {
  while (first_ != nullptr) first_->time_out();
}

}  // namespace rehearse::exec
