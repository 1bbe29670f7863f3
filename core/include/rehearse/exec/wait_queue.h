// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>

namespace rehearse::exec {

class Fiber;

enum class WaitResult { notified, timed_out };

// Where fibers wait for something: the fibers' condition variable, without a mutex (all fibers share a thread, and
// nothing runs between a check and wait()). Fibers are notified in the order in which they came.
//
// Ownership: the queue must outlive its waiters; destroying it with waiters is a programming error (checked).
// Errors: wait() throws RankAborted when the world ends; the waiter is then no longer in the queue.
class WaitQueue {
 public:
  WaitQueue() = default;
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;
  ~WaitQueue();

  // Suspends the calling fiber until it is notified or virtual time reaches `deadline`. Check the condition in a
  // loop: another fiber may run between the notification and the return. Must be called on a fiber of an executor.
  // `observer` must live until the call returns (put it on the stack).
  WaitResult wait(const Observer& observer, std::optional<VirtualTime> deadline = std::nullopt);

  // As wait(), but returns nullopt where wait() throws: for a caller that has to put something right first. It then
  // calls meet_the_end() (exec/wait/suspension.h) itself.
  std::optional<WaitResult> wait_or_end(const Observer& observer, std::optional<VirtualTime> deadline = std::nullopt);

  // For a call that cannot be unwound although the world has ended: waits for what the unwinding of another fiber
  // notifies. False: nobody is left who might.
  bool linger(const Observer& observer);

  // Makes waiters runnable; they run later, when the scheduler picks them. May be called from anywhere on the
  // executor's thread. Returns whether there was one.
  bool notify_one();
  std::size_t notify_all();

  // As if the deadline of every waiter had come: for a timer that many waits share. Not progress: see
  // RunOutcome::hang.
  void time_out_all() noexcept;

  bool empty() const noexcept { return first_ == nullptr; }

  // Fetches what notify_one() writes: for a caller that is about to notify many queues.
  void prefetch_waiter() const noexcept;

 private:
  class Waiting;
  class Deadline;
  friend void leave_queue(Fiber& fiber) noexcept;
  void append(Fiber& fiber) noexcept;
  void remove(Fiber& fiber) noexcept;
  void time_out(Fiber& fiber) noexcept;

  Fiber* first_ = nullptr;  // linked by Fiber::next_waiter
  Fiber* last_ = nullptr;
};

}  // namespace rehearse::exec
