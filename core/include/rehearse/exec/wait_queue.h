// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>

namespace rehearse::exec {

class Fiber;

enum class WaitResult { notified, timed_out };

// A queue of fibers that wait for a condition: a condition variable without a mutex, because all fibers share a thread
// and no other code runs between a check and wait(). Fibers are notified in the order in which they began to wait.
//
// Ownership: the queue must outlive its waiters; destroying it earlier is a programming error, which is checked.
// Errors: when the world ends, wait() takes its fiber out of the queue and throws RankAborted.
class WaitQueue {
 public:
  WaitQueue() = default;
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;
  ~WaitQueue();

  // Suspends the calling fiber until it is notified or virtual time reaches `deadline`. Check the condition in a loop,
  // because another fiber may run between the notification and the return. Call it on a fiber of an executor.
  // `observer` must live until the call returns; put it on the stack.
  WaitResult wait(const Observer& observer, std::optional<VirtualTime> deadline = std::nullopt);

  // Like wait(), but returns nullopt instead of throwing. For callers that must clean up first; they then call
  // abort_wait() (exec/wait/suspension.h) themselves.
  std::optional<WaitResult> wait_or_end(const Observer& observer, std::optional<VirtualTime> deadline = std::nullopt);

  // For a call that cannot be unwound although the world has ended: lets other fibers unwind, which may notify the
  // caller. Returns true when the caller runs again; then check the condition again. Returns false at once if every
  // other fiber has already had its turn to unwind: then no one is left to notify the caller.
  bool linger(const Observer& observer);

  // Make waiters runnable; the scheduler runs them later. May be called anywhere on the executor's thread. notify_one()
  // returns false if no fiber waits.
  bool notify_one();
  std::size_t notify_all();

  // Ends every wait as if its deadline had come. For a timer that many waits share. Does not count as progress: see
  // RunOutcome::hang.
  void time_out_all() noexcept;

  bool empty() const noexcept { return first_ == nullptr; }

  // Prefetches the memory that notify_one() writes. For callers that are about to notify many queues.
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
