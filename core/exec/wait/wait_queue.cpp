// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/wait_queue.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "exec/executor/switcher.h"
#include "exec/executor/world_outcome.h"
#include "exec/executor/world_parts.h"
#include "suspension.h"

namespace rehearse::exec {

// The running fiber's place in a queue. The links are in the fiber, not in its frame, so that notifying touches no
// stack.
class WaitQueue::Waiting {
 public:
  Waiting(WaitQueue& queue, Fiber& fiber) : queue_(queue), fiber_(fiber) {
    // A fiber woken by the end of the world may enter another wait (for a lock) before it has left its first wait.
    if (fiber.in_queue) fiber.queue->remove(fiber);
    queue.append(fiber);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (fiber_.in_queue && fiber_.queue == &queue_) queue_.remove(fiber_);
  }

 private:
  WaitQueue& queue_;
  Fiber& fiber_;
};

class WaitQueue::Deadline final : public Timer {
 public:
  Deadline(WaitQueue& queue, Fiber& fiber, const Observer& observer, VirtualTime due)
      : queue_(queue), fiber_(fiber), pause_(fiber.is_main() && observer.is_opaque()) {
    // A loop waits again for the rest of its time, with the same limit.
    if (is_patient(*fiber.world) && fiber.limit != due) {
      fiber.limit = due;
      fiber.passed_before_limit = timers().passed_by_choice();
    }
    timers().arm(*this, due - fiber.passed_before_limit);
  }
  ~Deadline() override { timers().cancel(*this); }

 private:
  // In a wait without a failure result (a condition variable) a rank may just pause, as in a sleep. A helper's wait is
  // more likely a watchdog's, and counting it as a pause would hide every hang.
  bool gives_up() const noexcept override { return !pause_; }
  Kind kind() const noexcept override { return Kind::limit; }
  void fire() override { queue_.time_out(fiber_); }
  TimerQueue& timers() const noexcept { return fiber_.world->timers; }

  WaitQueue& queue_;
  Fiber& fiber_;
  const bool pause_;
};

// The owner must keep the queue while fibers wait in it: no one would wake them, and they would leave a destroyed
// queue.
WaitQueue::~WaitQueue() { REHEARSE_CHECK(empty(), first_->rank, first_->id); }

void WaitQueue::append(Fiber& fiber) noexcept {
  REHEARSE_CHECK(!fiber.in_queue && (last_ == nullptr) == (first_ == nullptr), fiber.rank, fiber.id, fiber.in_queue);
  fiber.queue = this;
  fiber.in_queue = true;
  fiber.timed_out = false;
  fiber.previous_waiter = last_;
  fiber.next_waiter = nullptr;
  (last_ != nullptr ? last_->next_waiter : first_) = &fiber;
  last_ = &fiber;
}

void WaitQueue::remove(Fiber& fiber) noexcept {
  REHEARSE_CHECK(fiber.in_queue && fiber.queue == this, fiber.rank, fiber.id, fiber.in_queue);
  Fiber*& from_before = fiber.previous_waiter != nullptr ? fiber.previous_waiter->next_waiter : first_;
  REHEARSE_CHECK(from_before == &fiber, fiber.rank, fiber.id);
  fiber.in_queue = false;
  from_before = fiber.next_waiter;
  (fiber.next_waiter != nullptr ? fiber.next_waiter->previous_waiter : last_) = fiber.previous_waiter;
}

void WaitQueue::time_out(Fiber& fiber) noexcept {
  if (fiber.queue != this) return;  // it has entered another wait; see Waiting
  fiber.timed_out = true;
  fiber.world->outcome.note_time_out(fiber.rank);
  if (fiber.in_queue) remove(fiber);  // otherwise it has been notified and has not run yet
  fiber.world->switcher.make_runnable(fiber);
}

void WaitQueue::prefetch_waiter() const noexcept {
  if (first_ != nullptr) first_->prefetch_to_wake();
}

WaitResult WaitQueue::wait(const Observer& observer, std::optional<VirtualTime> deadline) {
  if (const auto result = wait_or_end(observer, deadline)) return *result;
  // Throws only now, after the waiter has left the queue: a fiber that leave_behind() gives up never removes itself.
  abort_wait(require_fiber("WaitQueue::wait()"), observer);
}

std::optional<WaitResult> WaitQueue::wait_or_end(const Observer& observer, std::optional<VirtualTime> deadline) {
  Fiber& fiber = require_fiber("WaitQueue::wait()");
  const Waiting waiting(*this, fiber);
  std::optional<Deadline> timer;
  if (deadline && *deadline != VirtualTime::max()) timer.emplace(*this, fiber, observer, *deadline);
  if (!suspend_or_end(fiber, observer)) return std::nullopt;
  return fiber.timed_out ? WaitResult::timed_out : WaitResult::notified;
}

bool WaitQueue::linger(const Observer& observer) {
  Fiber& fiber = require_fiber("WaitQueue::linger()");
  const Waiting waiting(*this, fiber);
  return exec::linger(fiber, observer);
}

void leave_queue(Fiber& fiber) noexcept { fiber.queue->remove(fiber); }

bool WaitQueue::notify_one() {
  if (first_ == nullptr) return false;
  Fiber& fiber = *first_;
  remove(fiber);
  fiber.world->idle_policy.note_progress();
  fiber.world->switcher.make_runnable(fiber);
  return true;
}

std::size_t WaitQueue::notify_all() {
  std::size_t count = 0;
  while (notify_one()) ++count;
  return count;
}

void WaitQueue::time_out_all() noexcept {
  while (first_ != nullptr) time_out(*first_);
}

}  // namespace rehearse::exec
