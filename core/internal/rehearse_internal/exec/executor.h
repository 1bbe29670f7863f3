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

  // Stack of each fiber, guard page excluded. Mapped lazily: what is never touched costs address space only.
  std::size_t stack_bytes = std::size_t{8} << 20;

  // A run of more switches than this ends as Ending::step_budget.
  std::uint64_t steps_max = 1'000'000'000;

  // IdlePolicy::look() is called so often while fibers can run; 0: never.
  std::uint32_t switches_between_looks = 0;

  // Calls that never block may switch, too; see this_rank::preempt().
  bool preempt = false;

  // What a look in vain costs in virtual time (see this_rank::poll) at least; more than 0.
  VirtualDuration look_cost = std::chrono::microseconds(1);

  // Rounds in which nobody did anything but look (see this_rank::poll) before the run ends as Ending::livelock:
  // looks at state alone, and looks at the clock or sleeps. A loop of pauses of a millisecond comes past c10d's default
  // timeout of 30 minutes.
  std::uint64_t idle_looks_max = 1'000;
  std::uint64_t idle_timed_looks_max = 2'000'000;
};

// How a run came to its end.
enum class Ending {
  all_returned,  // every rank's body returned
  rank_failed,   // an exception left a rank's body and the failure sink ended the world
  deadlock,      // no fiber can run and no timer is armed
  livelock,      // fibers only look at things that can no longer change
  step_budget,   // ExecutorOptions::steps_max
  stopped,       // stop() was called (a checker found an error)
  interrupted,   // from outside of the world: interrupt.h
};

enum class RankEnd { returned, failed, aborted };

// A fiber that had not ended when the world did.
struct BlockedFiber {
  int rank = -1;
  std::uint32_t fiber_of_rank = 0;
  bool was_blocked = true;     // false: it could have gone on, and met the end of the world in what follows
  bool polls = false;          // it looks again and again (see this_rank::poll)
  std::string waits_on;        // Observer::describe()
  std::string call;            // Observer::call()
  std::vector<int> waits_for;  // Observer::waits_for()
  bool any_rank = false;       // Observer::any_rank_may_end_it()
  std::uint64_t fingerprint = 0;
  CallSite where;
  std::optional<Unwinding> unwinding;  // it met the end of the world in a destructor
};

struct RunOutcome {
  Ending ending = Ending::all_returned;
  std::string stop_reason;            // what stop() was given
  std::vector<RankEnd> ranks;         // one for each rank
  std::vector<VirtualTime> ended_at;  // one for each rank
  std::vector<RankFailure> failures;  // in order of time
  std::vector<BlockedFiber> blocked;  // by rank, then fiber

  // When the world ended because of a timeout that fired although nothing else could happen any more: who was blocked
  // on what when the hang began (without call sites), and when that was. Empty when somebody could still have come.
  std::vector<BlockedFiber> hang;
  VirtualTime hang_began{};
  // For a livelock in which calls fail again and again: the rank, and the text of the last error if it is known.
  struct FailingLoop {
    int rank = -1;
    std::string error;
  };
  std::optional<FailingLoop> failing_loop;
  // For a livelock in which only timeouts came, again and again: the rank of the last one.
  std::optional<int> last_time_out;
  VirtualTime end_time{};
  std::uint64_t switches = 0;
};

// Runs the ranks of one world as fibers of the calling thread, one at a time, and decides through `Decisions` who runs
// next. Time passes only when nobody can run.
//
// Blocking: run() blocks the calling thread until every rank has ended. Threads: one executor a thread at a time; all
// other members may be called from fibers of this executor, from timers, and before run(), on the same thread.
// Lifetime: every reference given to the constructor outlives the executor.
// Errors: run() throws what the oracle threw; std::logic_error on nested use. Failures of ranks are data, not throws.
class RankExecutor {
 public:
  RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink);
  // `idle`: what happens when nobody can run, where that is not what virtual time makes of it (idle_policy.h).
  RankExecutor(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink,
               IdlePolicy& idle);
  RankExecutor(const RankExecutor&) = delete;
  RankExecutor& operator=(const RankExecutor&) = delete;
  ~RankExecutor();

  // Runs `body(rank)` on each rank's main fiber. Once per executor.
  RunOutcome run(const std::function<void(int rank)>& body);

  // Runs `work` soon on a helper fiber of `rank`, in that rank's context: its state, its generator, its rank number.
  // Work given to one rank runs in order, one piece at a time. This is how a collective's completion reaches the
  // callbacks of a rank that did not finish it.
  void post(int rank, std::function<void()> work);

  // Starts another fiber of the calling fiber's rank (what a thread is to a process). Returns its fiber_of_rank.
  // `work` must not throw.
  std::uint32_t spawn(std::function<void()> work);

  // What each helper fiber does is done by `around`, in that fiber: it calls `work` once. Before run().
  void do_helpers_work_by(std::function<void(int rank, const std::function<void()>& work)> around);

  // Ends the world: fibers meet RankAborted at their next blocking call, runnable ones first, then the blocked by rank.
  void stop(std::string reason);
  bool ending() const noexcept;

  // Tells the livelock detector that something happened that a polling rank may see.
  void note_progress() noexcept;

  // Something has changed that a polling rank may see, but nobody has come further by it: a call has timed out.
  void note_step() noexcept;

  // As this_rank::note_given_up(), for `rank`, from anywhere: a wait, or what the rank will learn by a future, has met
  // its timeout. The first one of a point in time stays.
  void note_given_up(int rank, const Observer& observer);

  // Who explains opaque waits (see Observer::is_opaque()); not owned, null: nobody.
  void explain_waits_by(const WaitExplainer* explainer) noexcept;

  TimerQueue& timers() noexcept;
  Clock& clock() noexcept;
  Decisions& decisions() noexcept;
  const ExecutorOptions& options() const noexcept;

  // The executor whose run() is under way on this thread; null when there is none.
  static RankExecutor* current() noexcept;

  // For the rooms of core/exec.
  WorldParts& parts() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::exec
