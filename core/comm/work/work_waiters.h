// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/clock.h>

namespace rehearse::comm {

// The fibers of a rank that wait for one of its works.
class WorkWaiters {
 public:
  enum class Ended { over, aborted, out_of_time };

  // Blocks the calling fiber until `over()` is true, abort() ends the wait, or `clock` reaches `limit`. `waiting`
  // describes the blocked call. Throws RankAborted when the world ends. Inline, because the stack of each waiting rank
  // would hold the frame of wait(), and with a thousand stacks each cache line counts.
  template <class Over>
  Ended wait(const Over& over, const exec::Clock& clock, std::optional<VirtualTime> limit,
             const exec::Observer& waiting) {
    // Another fiber of the rank may still wait for the same work. Then keep its observer.
    const auto no_longer = c10::make_scope_exit([&]() noexcept {
      if (waiting_ == &waiting) waiting_ = nullptr;
    });
    waiting_ = &waiting;
    while (!over()) {
      if (std::exchange(aborted_, false)) return Ended::aborted;
      const auto result = queue_.wait(waiting, limit);
      if (result == exec::WaitResult::notified || over() || clock.now() < *limit) continue;
      return Ended::out_of_time;
    }
    return Ended::over;
  }

  // The blocked call of the fiber that began to wait last; null: that fiber no longer waits.
  const exec::Observer* waiting() const noexcept { return waiting_; }

  // as_timeout: the end is no progress.
  enum class Wake : std::uint8_t { as_progress, as_timeout };
  void wake_all(Wake wake) {
    if (wake == Wake::as_timeout) return queue_.time_out_all();
    queue_.notify_all();
  }

  // Ends the current wait or, if there is none, the next one.
  void abort() {
    aborted_ = was_aborted_ = true;
    wake_all(Wake::as_progress);
  }

  bool was_aborted() const noexcept { return was_aborted_; }

  void prefetch_waiter() const noexcept { queue_.prefetch_waiter(); }

 private:
  exec::WaitQueue queue_;
  const exec::Observer* waiting_ = nullptr;
  bool aborted_ = false;  // and the wait has not ended yet
  bool was_aborted_ = false;
};

}  // namespace rehearse::comm
