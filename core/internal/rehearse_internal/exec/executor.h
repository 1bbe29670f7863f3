// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/rank_state.h>
#include <rehearse_internal/exec/timer_queue.h>

namespace rehearse::exec {

class IdlePolicy;
struct WorldParts;

struct ExecutorOptions {
  int ranks = 1;

  // The stack size of each fiber, without the guard page. Mapped lazily: untouched pages cost only address space.
  std::size_t stack_bytes = std::size_t{8} << 20;

  // A run that exceeds this number of switches ends as Ending::step_budget.
  std::uint64_t steps_max = 1'000'000'000;

  // How many switches lie between two calls of IdlePolicy::poll() while fibers can run; 0: poll() is never called.
  std::uint32_t switches_between_polls = 0;

  // Lets calls that never block switch, too; see this_rank::preempt().
  bool preempt = false;

  // How long a fiber that can run may be made to wait: the oracle may let time pass to the next event although fibers
  // can run. Limits of waits do not come closer by that. Also, the first three polls in a row leave a fiber among those
  // that can run (without patience, only the first does). 0: time passes only when no fiber can run.
  VirtualDuration patience{0};

  // How long the user's calls on files take at most; the oracle draws the time of each. 0: no time.
  VirtualDuration file_time{0};

  // The least virtual time that a poll without result takes (see this_rank::poll); must be positive.
  VirtualDuration poll_cost = std::chrono::microseconds(1);

  // After this many rounds in which all fibers only poll (see this_rank::poll), the run ends as Ending::livelock. The
  // first limit is for polls of state alone; beyond it, the timers that are still armed fire first. The second limit is
  // for polls that also read the clock or sleep. It lets a loop with pauses of a millisecond outlast c10d's default
  // timeout of 30 minutes.
  std::uint64_t idle_polls_max = 1'000;
  std::uint64_t idle_timed_polls_max = 2'000'000;
};

enum class Ending {
  all_returned,  // every rank has ended, and nothing ended the world earlier; see RunOutcome::ranks
  rank_failed,   // an exception left a rank's body and the failure sink ended the world
  deadlock,      // no fiber can run and no timer is armed
  livelock,      // fibers only poll things that can no longer change, or only repeat calls that fail or time out
  step_budget,   // more switches than ExecutorOptions::steps_max
  stopped,       // stop() was called, for example by a checker that found an error
  interrupted,   // from outside of the world; see interrupt.h
};

enum class RankEnd { returned, failed, aborted };

// A fiber that had not ended when the world ended, and its wait.
struct BlockedFiber : Wait {
  int rank = -1;
  std::uint32_t fiber_of_rank = 0;
  bool was_blocked = true;  // false: it could have gone on; RankAborted was thrown in the call described above
  bool polls = false;       // it was polling; see this_rank::poll
  CallSite where;
  std::optional<Unwinding> unwinding;  // set if an exception was unwinding the fiber in that call
};

struct RunOutcome {
  Ending ending = Ending::all_returned;
  std::string stop_reason;            // why the run ended; after stop(): its argument
  std::vector<RankEnd> ranks;         // one for each rank
  std::vector<VirtualTime> ended_at;  // one for each rank
  std::vector<RankFailure> failures;  // in order of time
  std::vector<BlockedFiber> blocked;  // by rank, then fiber

  // The blocked fibers and their waits at `hang_began`, the beginning of a hang. Set if the world ended because of a
  // timeout that fired when nothing else could happen any more. Empty if some fiber could still have gone on. A fiber's
  // call site is set if the fiber left its wait after that time.
  std::vector<BlockedFiber> hang;
  VirtualTime hang_began{};
  VirtualTime end_time{};
  // The waits that led to the end, and when they began to be all that there was: those of the hang if there was one.
  const std::vector<BlockedFiber>& last_waits() const noexcept { return hang.empty() ? blocked : hang; }
  VirtualTime time_of_last_waits() const noexcept { return hang.empty() ? end_time : hang_began; }
  // For a livelock in which calls fail again and again: the rank, and the text of the last error if known.
  struct FailingLoop {
    int rank = -1;
    std::string error;
  };
  std::optional<FailingLoop> failing_loop;
  // For a livelock in which only timeouts fired, again and again: the rank of the last one.
  std::optional<int> last_time_out;
  std::uint64_t switches = 0;
};

// Runs the ranks of one world as fibers of the calling thread, one at a time. Asks `Decisions` which fiber runs next.
// In a simulation, time passes when no fiber can run, and where ExecutorOptions::patience allows it.
//
// Blocking: run() blocks the calling thread until every rank has ended. Threads: at most one executor per thread at a
// time. All other members may be called on the same thread: from fibers of this executor, from timers, and before
// run().
// Lifetime: every reference given to the constructor must outlive the executor.
// Errors: the constructor throws std::invalid_argument if there are no ranks. run() throws what the oracle threw,
// std::logic_error if it is called twice or inside another run(), std::runtime_error if the process calls libc's
// blocking functions instead of ours, and the error if a rank cannot be created. Failures of ranks are data in the
// outcome.
class RankExecutor {
 public:
  RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink);
  // `idle` decides what happens when no fiber can run, instead of the policy of virtual time (see idle_policy.h).
  RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink,
               IdlePolicy& idle);
  RankExecutor(const RankExecutor&) = delete;
  RankExecutor& operator=(const RankExecutor&) = delete;
  ~RankExecutor();

  // Runs `body(rank)` on each rank's main fiber. Call it once per executor.
  RunOutcome run(const std::function<void(int rank)>& body);

  // Schedules `work` on a helper fiber of `rank`, in that rank's context: its state, its generator, its rank number.
  // Work for one rank runs in order, one piece at a time. For callbacks at the end of a collective, which may end in a
  // timer or in another rank's fiber.
  void post(int rank, std::function<void()> work);
  // Work that begins when all earlier work of the rank has ended, even work that blocks.
  void post_after_all(int rank, std::function<void()> work);

  // Whether work of post() has not ended yet.
  bool has_posted(int rank) noexcept;

  // Starts another fiber of the calling fiber's rank, the counterpart of a thread. Returns its fiber_of_rank. If `work`
  // throws, the rank fails.
  std::uint32_t spawn(std::function<void()> work);

  // Wraps the work of helper fibers: each of them calls `around` with its work, and `around` must call the work once.
  // Call it before run().
  void do_helpers_work_by(std::function<void(int rank, const std::function<void()>& work)> around);

  // Ends the world: the next blocking call of each fiber throws RankAborted. This happens first in the runnable fibers,
  // then in the blocked ones, in the order of Fiber::id.
  void stop(std::string reason);
  bool ending() const noexcept;

  // Tells the livelock detector that something happened that a polling rank may notice.
  void note_progress() noexcept;

  // Tells the livelock detector about a change that a polling rank may notice, but that is no progress: a call has
  // timed out.
  void note_step() noexcept;

  // Like this_rank::note_given_up(), for `rank`, from anywhere. Call it when a wait of the rank has reached its
  // timeout, or when an operation whose future the rank will read has reached its timeout. Of several calls at the same
  // time, the first one counts.
  void note_given_up(int rank, const Observer& observer);

  // Sets who explains opaque waits (see Observer::is_opaque()). Not owned; null: no one.
  void explain_waits_by(const WaitExplainer* explainer) noexcept;

  TimerQueue& timers() noexcept;
  Clock& clock() noexcept;
  Decisions& decisions() noexcept;
  const ExecutorOptions& options() const noexcept;

  // The executor that is in run() on this thread; null if there is none.
  static RankExecutor* current() noexcept;

  // Only for the rooms of core/exec.
  WorldParts& parts() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::exec
