// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/interrupt.h>
#include <sys/types.h>

#include "current_fiber.h"
#include "run_queue.h"

namespace boost::fibers {
class context;
}

namespace rehearse::exec {

class FiberTable;
class IdlePolicy;
class WorldOutcome;

// Keeps the fibers that can run, chooses the next one, and switches to it. Fibers run until none can; meanwhile the
// thread's main context sleeps in resume_fibers().
class Switcher {
 public:
  // Looks at what comes from outside. Called every ExecutorOptions::switches_between_looks switches.
  using Look = std::function<void()>;

  // `process`: the one that made the world. All references outlive this.
  Switcher(const ExecutorOptions& options, pid_t process, const FiberTable& fibers, Decisions& decisions,
           const Clock& clock, IdlePolicy& idle_policy, WorldOutcome& outcome, RankState& state, Look look);
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  CurrentFiber& current_fiber() noexcept { return current_fiber_; }
  bool any_runnable() const noexcept { return !runnable_.empty(); }

  // Nothing happens unless the fiber is blocked.
  void make_runnable(Fiber& fiber) noexcept;
  // Undoes make_runnable() for a fiber that is not to run.
  void withdraw(Fiber& fiber) noexcept;

  // These three are for the running fiber.
  // Blocks it; returns when it runs again.
  void suspend(Fiber& fiber) noexcept;
  // As exec::yield(), but throws nothing: where the world has ended, the fiber meets that at its next blocking call.
  void give_way(Fiber& fiber) noexcept;
  // See this_rank::preempt().
  void preempt(Fiber& fiber) noexcept;

  // Call on the thread's main context. Returns when no fiber can run, or when the choice of one ended the world.
  void resume_fibers();

  // The next context to run; the main one when no fiber can. Called by Boost.Fiber in a context that it takes off the
  // thread: one that ends, or waits in a primitive of Boost's.
  boost::fibers::context* pick_next() noexcept;

  // Ends the world if somebody outside has asked for it. Does not return in a process that a rank has forked.
  bool stop_if_interrupted() noexcept;
  // The same where no fiber runs.
  void stop_between_switches() noexcept;

 private:
  Fiber* choose_next() noexcept;
  void offer_turn(Fiber& fiber) noexcept;
  void set_next_stop(std::uint64_t switches) noexcept;
  // False: the run is at its end.
  [[gnu::cold, gnu::noinline]] bool pass_stop() noexcept;
  [[gnu::cold, gnu::noinline]] void be_interrupted() noexcept;
  [[gnu::cold, gnu::noinline]] void stop_by_oracle() noexcept;

  RunQueue runnable_;
  const Interruption interrupted_again_ = InterruptedAgain::place();
  std::uint64_t next_stop_ = 0;  // more switches than these: see pass_stop()
  WorldOutcome& outcome_;
  Decisions& decisions_;
  const Clock& clock_;
  const FiberTable& fibers_;
  IdlePolicy& idle_policy_;
  const bool preempt_;
  CurrentFiber current_fiber_;

  const std::uint64_t steps_max_;
  const std::uint64_t switches_between_looks_;
  const pid_t process_;
  const Look look_;
};

}  // namespace rehearse::exec
