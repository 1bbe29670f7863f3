// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/executor.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {

// The progress and the end of a run: whether it has ended, and what RankExecutor::run() will return. Only this class
// writes them.
class WorldOutcome {
 public:
  WorldOutcome(const Clock& clock, int ranks);
  WorldOutcome(const WorldOutcome&) = delete;
  WorldOutcome& operator=(const WorldOutcome&) = delete;

  // Only the first call counts.
  void end(Ending ending, std::string reason) noexcept;
  // Like end(); run() will then throw the exception that is being handled. A later call may replace the exception.
  void end_by_error(std::string reason) noexcept;
  bool ended() const noexcept { return ended_; }
  // Whether the world or the fiber's rank has ended.
  bool ended_for(const Fiber& fiber) const noexcept { return ended_ || fiber.abort; }
  bool ended_early() const noexcept { return ended_ && outcome_.ending != Ending::all_returned; }
  const std::string& reason() const noexcept { return outcome_.stop_reason; }

  // Returns the new number. The watchdog reads it from its own thread.
  std::uint64_t count_switch() noexcept {
    const auto count = outcome_.switches + 1;
    std::atomic_ref(outcome_.switches).store(count, std::memory_order_relaxed);
    return count;
  }
  const std::uint64_t& switches() const noexcept { return outcome_.switches; }

  void note_end_of_rank(int rank, RankEnd how) { outcome_.ranks[static_cast<std::size_t>(rank)] = how; }
  void note_time_of_end(int rank) { outcome_.ended_at[static_cast<std::size_t>(rank)] = clock_.now(); }
  void note_failure(const RankFailure& failure) { outcome_.failures.push_back(failure); }

  // Records what the fiber waits for in an ended world, once per fiber. `observer`: the call that the fiber is in;
  // null: none.
  void note_blocked(Fiber& fiber, const Observer* observer);
  // Like note_blocked(), and adds the call site of `fiber`, which must be the running one. Does nothing unless the
  // world has ended early.
  void note_where(Fiber& fiber, const Observer* observer);
  // Records where a fiber hung. Call it when the fiber leaves its wait because of a timeout or a failure of other
  // ranks: when the world ends, the fiber may be gone.
  void note_where_it_hung(Fiber& fiber, const Observer& observer);
  // Records what the running fiber polls, and where. If the run ends as a livelock while the fiber pauses between two
  // polls, this is what it waits for.
  void note_look(const Fiber& fiber, const Observer& observer);
  bool hangs() const noexcept { return !hang_.empty() || !outcome_.hang.empty(); }

  // Records a hang that began at `since`: what each of the blocked fibers among `fibers` waits for. Does nothing if a
  // hang is already recorded. See RunOutcome::hang.
  void note_hang(const std::vector<Fiber*>& fibers, VirtualTime since);
  void forget_hang() noexcept { hang_.clear(); }

  // `error`: the error of the rank's last call; null: unknown.
  void note_failing_loop(int rank, const std::exception_ptr& error);
  void note_time_out(int rank) noexcept { last_time_out_ = rank; }
  void note_loop_of_time_outs() noexcept { outcome_.last_time_out = last_time_out_; }

  void explain_waits_by(const WaitExplainer* explainer) noexcept { explainer_ = explainer; }

  // Returns the result, with blocked fibers ordered by rank. Call it once, at the very end. Throws the exception of
  // end_by_error().
  RunOutcome take();

 private:
  BlockedFiber describe(const Fiber& fiber, const Observer* observer) const;

  const Clock& clock_;
  const WaitExplainer* explainer_ = nullptr;
  RunOutcome outcome_;
  bool ended_ = false;
  bool taken_ = false;
  std::exception_ptr error_;
  std::vector<BlockedFiber> hang_;  // cleared when ranks make progress
  struct Look {
    Wait wait;
    CallSite where;
  };
  std::map<std::uint32_t, Look> looks_;  // by Fiber::id
  VirtualTime hang_began_{};
  std::optional<int> last_time_out_;  // the rank of the last timeout
};

}  // namespace rehearse::exec
