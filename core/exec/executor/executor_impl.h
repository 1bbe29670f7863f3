// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/interrupt.h>
#include <unistd.h>

#include "exec/fiber/fiber_table.h"
#include "exec/fiber/stack_pool.h"
#include "exec/time/virtual_idle_policy.h"
#include "failed_calls.h"
#include "outside.h"
#include "pollers.h"
#include "run_queue.h"
#include "stage.h"
#include "world_outcome.h"

namespace boost::fibers {
class context;
}

namespace rehearse::exec {

class Scheduler;

namespace interpose {
struct WorldState;
}

std::uint64_t new_world_number() noexcept;

// The executor's inside: the fibers of a world, and who of them runs next. Fibers run until none can; then the thread's
// main context, which sleeps in run() meanwhile, is resumed to fire timers, let time pass, or end the world.
class RankExecutor::Impl {
 public:
  // `idle`: null: that of virtual time.
  Impl(ExecutorOptions options, Decisions& decisions, Clock& clock, RankState& state, FailureSink& sink,
       IdlePolicy* idle);
  ~Impl();

  RunOutcome run(const std::function<void(int)>& body);
  void post(int rank, std::function<void()> work);
  Fiber& spawn(int rank, std::function<void()> work);
  void do_helpers_work_by(std::function<void(int, const std::function<void()>&)> around) {
    around_helpers_ = std::move(around);
  }
  void stop(Ending ending, std::string reason) noexcept { outcome.end(ending, std::move(reason)); }

  // The next context to run; the host when no fiber can. Called by Boost.Fiber in a context that it takes off the
  // stage: one that ends, or waits in a primitive of Boost's.
  boost::fibers::context* pick_next() noexcept;

  // Nothing happens unless the fiber is blocked.
  void make_runnable(Fiber& fiber) noexcept;
  // As exec::yield(), but throws nothing: where the world has ended, the fiber meets that at its next blocking call.
  void give_way(Fiber& fiber) noexcept;
  // See this_rank::preempt().
  void preempt(Fiber& fiber) noexcept;
  // Leaves the stage; returns when this fiber runs again.
  void suspend(Fiber& fiber) noexcept;

  // Has the world (or the rank that this fiber helps) ended without this fiber?
  bool must_end(const Fiber& fiber) const noexcept { return outcome.ended() || fiber.abort; }
  bool ending() const noexcept { return outcome.ended(); }
  // std::terminate() or exit() in a fiber: the rank has failed of the exception that is being handled (or could not be
  // unwound); the other ranks have not.
  [[noreturn]] void terminate(Fiber& fiber);
  // See crash_rank() and is_alive().
  void crash(int rank);
  bool is_alive(int rank) const noexcept;
  // See restart_rank(), is_to_begin_again(), WorldHold and incarnation().
  void restart(int rank, VirtualDuration after, std::function<void()> before);
  bool is_to_begin_again(int rank) const noexcept;
  void hold() noexcept { ++holds_; }
  void let_go() noexcept { --holds_; }
  int incarnation(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)].incarnation; }
  // The running fiber cannot be unwound any further: it stays suspended for ever.
  [[noreturn]] void leave_behind(Fiber& fiber);

  IdlePolicy& idle_policy() noexcept { return *idle_policy_; }
  const Fiber& fiber(std::uint32_t id) const noexcept { return fibers_[id]; }
  void note_given_up(int rank, const Observer& observer);

  const ExecutorOptions options;
  Decisions& decisions;
  Clock& clock;
  RankState& state;
  FailureSink& sink;
  const pid_t process = getpid();
  const std::uint64_t world = new_world_number();
  TimerQueue timers;
  const std::shared_ptr<Outside> outside;  // null: time stands still while ranks run, and no thread may come
  const std::unique_ptr<interpose::WorldState> interposed;
  WorldOutcome outcome;
  Pollers pollers;
  FailedCalls failed_calls;

 private:
  struct Rank {
    Fiber* main = nullptr;
    std::deque<std::function<void()>> posted;
    bool posted_running = false;
    bool failed = false;
    std::uint32_t fibers = 0;  // so far, in all its lives
    int incarnation = 0;
    std::optional<GivenUpWait> gave_up;
  };
  class Restart;

  // fiber_life.cpp: how fibers begin and end
  void create_ranks();
  void create_main(int rank);
  Fiber& create(int rank, std::uint32_t fiber_of_rank, std::function<void()> work);
  Fiber& new_fiber(int rank, std::uint32_t fiber_of_rank);
  void enter(Fiber& fiber, std::function<void()>& work) noexcept;
  void run_body(Fiber& fiber, const std::function<void()>& work) noexcept;
  void record_failure(Fiber& fiber, std::exception_ptr error, CallSite thrown_at);
  void end(Fiber& fiber) noexcept;
  void note_ended(Fiber& fiber) noexcept;
  void run_posted(int rank);
  void abort_rank(int rank) noexcept;
  // crash.cpp, restart.cpp: ranks that never run again, and those that do
  void stop_for_ever(Fiber& fiber) noexcept;
  void begin_again(Restart& restart) noexcept;
  void call_off_restarts() noexcept;
  // May a rank yet begin again? Then the world goes on without any.
  bool awaits_restarts() const noexcept { return !ending() && (restarts_due_ > 0 || holds_ > 0); }

  // switching.cpp: who runs next
  Fiber* choose_next() noexcept;
  void resume_fibers();
  void offer_stage(Fiber& fiber) noexcept;
  void set_next_stop(std::uint64_t switches) noexcept;
  // False: the run is at its end.
  [[gnu::cold]] bool pass_stop() noexcept;
  // Has somebody outside asked for the end of the run? Does not return in a process that a rank has forked.
  bool stop_if_interrupted() noexcept;
  // The same where no fiber runs.
  void stop_between_switches() noexcept;

  // idle.cpp: what happens when nobody can run
  void idle();
  void let_time_pass(const IdleStep& step, bool any_polls);
  void release_pollers();
  // outside.cpp: what other threads have brought, and whom their signals wake. Only where they may come.
  void take_from_outside() noexcept;

  // world_end.cpp: how a world ends
  void finish_world();

  VirtualIdlePolicy virtual_idle_policy_;
  IdlePolicy* const idle_policy_;  // that one, or the mode's

  std::function<void(int)> body_;  // of each rank
  std::function<void(int, const std::function<void()>&)> around_helpers_;
  std::vector<Rank> ranks_;
  std::vector<std::deque<std::function<void()>>> buried_;  // what crashed ranks had yet to run
  std::vector<std::unique_ptr<Restart>> restarts_;         // all that were asked for
  std::size_t restarts_due_ = 0;
  std::size_t holds_ = 0;
  FiberTable fibers_;
  RunQueue runnable_;
  const Interruption interrupted_again_ = InterruptedAgain::place();
  std::uint64_t next_stop_ = 0;  // more switches than these: see pass_stop()
  Stage stage_;
  Scheduler* scheduler_ = nullptr;
  StackPool& stacks_;

  std::exception_ptr error_;  // what run() throws in the end
  int mains_alive_ = 0;
  std::size_t alive_ = 0;
  std::size_t ended_since_release_ = 0;
};

}  // namespace rehearse::exec
