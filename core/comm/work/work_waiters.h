// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <c10/util/FunctionRef.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/clock.h>

namespace rehearse::comm {

// Where a rank's fibers wait for one of its works.
class WorkWaiters {
 public:
  enum class Ended { over, aborted, out_of_time };

  // Blocks the calling fiber until `over()` holds, abort() ends the wait, or `clock` reaches `limit`. `waiting` says
  // what is blocked. Throws RankAborted when the world ends.
  Ended wait(c10::function_ref<bool()> over, const exec::Clock& clock, std::optional<VirtualTime> limit,
             const exec::Observer& waiting);

  // Null: no fiber waits.
  const exec::Observer* waiting() const noexcept { return waiting_; }

  void notify_all() { queue_.notify_all(); }
  void time_out_all() noexcept { queue_.time_out_all(); }

  // Ends the wait that is under way, or the next one.
  void abort();

  void prefetch_waiter() const noexcept { queue_.prefetch_waiter(); }

 private:
  exec::WaitQueue queue_;
  const exec::Observer* waiting_ = nullptr;  // of the wait that is under way
  bool aborted_ = false;
};

}  // namespace rehearse::comm
