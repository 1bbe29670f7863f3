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

// Keeps the runnable fibers, chooses the next one, and switches to it. Fibers run until none can; meanwhile the
// thread's main context waits in resume_fibers().
class Switcher {
 public:
  // Looks for events from outside. Called every ExecutorOptions::switches_between_polls switches.
  using Poll = std::function<void()>;

  // `process`: the process that made the world. All references must outlive this object.
  Switcher(const ExecutorOptions& options, pid_t process, const FiberTable& fibers, Decisions& decisions,
           const Clock& clock, IdlePolicy& idle_policy, WorldOutcome& outcome, RankState& state, Poll poll);
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  CurrentFiber& current_fiber() noexcept { return current_fiber_; }
  bool any_runnable() const noexcept { return !runnable_.empty(); }

  // Does nothing unless the fiber is blocked.
  void make_runnable(Fiber& fiber) noexcept;
  // Undoes make_runnable() for a fiber that must not run.
  void withdraw(Fiber& fiber) noexcept;

  // The next three functions are for the running fiber.

  // Blocks the fiber; returns when the fiber runs again.
  void suspend(Fiber& fiber) noexcept;
  // Like exec::yield(), but never throws: if the world has ended, the fiber's next blocking call throws RankAborted.
  void give_way(Fiber& fiber) noexcept;
  // See this_rank::preempt().
  void preempt(Fiber& fiber) noexcept;

  // Call it on the thread's main context. Returns when no fiber can run, or when choosing one ended the world.
  void resume_fibers();

  // Returns the next context to run, or the main one if no fiber can. Boost.Fiber calls it in a context that it takes
  // off the thread because the context ends or waits in a Boost primitive.
  boost::fibers::context* pick_next() noexcept;

  // Ends the world if an interrupt was requested. Does not return in a process that a rank has forked.
  bool stop_if_interrupted() noexcept;
  // Like stop_if_interrupted(), for use while no fiber runs. Also ends the world at the place of an InterruptedAgain.
  void stop_between_switches() noexcept;

 private:
  Fiber* choose_next() noexcept;
  void offer_turn(Fiber& fiber) noexcept;
  void set_next_stop(std::uint64_t switches) noexcept;
  // False if the run must end.
  [[gnu::cold, gnu::noinline]] bool pass_stop() noexcept;
  [[gnu::cold, gnu::noinline]] void be_interrupted() noexcept;
  [[gnu::cold, gnu::noinline]] void stop_by_oracle() noexcept;

  RunQueue runnable_;
  const Interruption interrupted_again_ = InterruptedAgain::place();
  std::uint64_t next_stop_ = 0;  // pass_stop() handles the first switch beyond this number
  WorldOutcome& outcome_;
  Decisions& decisions_;
  const Clock& clock_;
  const FiberTable& fibers_;
  IdlePolicy& idle_policy_;
  const bool preempt_;
  CurrentFiber current_fiber_;

  const std::uint64_t steps_max_;
  const std::uint64_t switches_between_polls_;
  const pid_t process_;
  const Poll poll_;
};

}  // namespace rehearse::exec
