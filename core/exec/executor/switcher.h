// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

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
class Patience;
class WorldOutcome;

// Keeps the runnable fibers, chooses the next one, and switches to it. Fibers run until none can; meanwhile the
// thread's main context waits in resume_fibers().
class Switcher {
 public:
  // Looks for events from outside. Called every ExecutorOptions::switches_between_polls switches.
  using Poll = std::function<void()>;

  // All that it takes of `world` must outlive this object.
  Switcher(const WorldParts& world, Decisions& decisions, RankState& state, Poll poll);
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  CurrentFiber& current_fiber() noexcept { return current_fiber_; }
  bool any_runnable() const noexcept { return !runnable_.empty(); }
  // Whether the oracle has chosen that time passes before the next fiber runs. Returns true once for each such choice.
  bool take_time_chosen() noexcept { return std::exchange(time_chosen_, false); }

  // Does nothing unless the fiber is blocked.
  void make_runnable(Fiber& fiber) noexcept;
  // Undoes make_runnable() for a fiber that must not run.
  void withdraw(Fiber& fiber) noexcept;

  // The next functions are for the running fiber.

  // Blocks the fiber; returns when the fiber runs again.
  void suspend(Fiber& fiber) noexcept;
  // Like exec::yield(), but never throws: if the world has ended, the fiber's next blocking call throws RankAborted.
  void give_way(Fiber& fiber) noexcept;
  // See this_rank::preempt().
  void preempt(Fiber& fiber, Access access = {}) noexcept;

  // Tells the oracle that the run begins.
  void begin();
  // Whether the oracle asks for Fiber::next_access.
  bool records_accesses() const noexcept { return records_accesses_; }

  // Lets the oracle pick one of 0..count-1; 0 after the oracle has failed, which ends the world.
  std::uint32_t choose_number(ChoiceKind kind, std::uint32_t count) noexcept;

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
  // Whether time may pass although fibers can run; see ExecutorOptions::patience.
  bool time_may_pass() const noexcept;
  // Asks the oracle about time, too. Returns the number of fibers if time is to pass.
  [[gnu::noinline]] std::uint32_t choose_fiber_or_time();
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
  const TimerQueue& timers_;
  const Patience& patience_;
  const bool is_patient_;
  bool time_chosen_ = false;
  bool records_accesses_ = false;
  const bool preempt_;
  CurrentFiber current_fiber_;

  const std::uint64_t steps_max_;
  const std::uint64_t switches_between_polls_;
  const pid_t process_;
  const Poll poll_;
};

}  // namespace rehearse::exec
