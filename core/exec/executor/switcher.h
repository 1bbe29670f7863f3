// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/interrupt.h>

#include "current_fiber.h"

namespace boost::fibers {
class context;
}

namespace rehearse::exec {

// The ids of the runnable fibers. New ones join at the end. Taking the first keeps the order of the others; taking
// another one moves the first into its place. Thus every take is O(1), and an oracle that always answers 0 schedules
// round robin.
class RunQueue {
 public:
  void push(std::uint32_t fiber) { ids_.push_back(fiber); }

  // Removes what was pushed last, if no take() came since.
  void pop() noexcept { ids_.pop_back(); }

  std::uint32_t take(std::size_t index) noexcept {
    const auto taken = ids_[head_ + index];
    ids_[head_ + index] = ids_[head_];
    ++head_;
    if (head_ == ids_.size()) {
      ids_.clear();
      head_ = 0;
    } else if (head_ >= kCompactAt && 2 * head_ >= ids_.size()) {
      ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return taken;
  }

  std::span<const std::uint32_t> candidates() const noexcept { return {ids_.data() + head_, ids_.size() - head_}; }
  // The fiber must be in the queue.
  std::size_t index_of(std::uint32_t fiber) const noexcept {
    const auto index = static_cast<std::size_t>(std::ranges::find(candidates(), fiber) - candidates().begin());
    REHEARSE_CHECK(index < size(), fiber, size());
    return index;
  }
  std::size_t size() const noexcept { return ids_.size() - head_; }
  bool empty() const noexcept { return head_ == ids_.size(); }

 private:
  static constexpr std::size_t kCompactAt = 1024;
  std::vector<std::uint32_t> ids_;
  std::size_t head_ = 0;
};

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

  // Call it on the thread's main context. Returns when no fiber can run, or when the world has ended, until unwind().
  void resume_fibers();
  // From now on fibers run although the world has ended.
  void unwind() noexcept { unwinds_ = true; }

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
  bool unwinds_ = false;
  bool records_accesses_ = false;
  const bool preempt_;
  CurrentFiber current_fiber_;

  const std::uint64_t steps_max_;
  const std::uint64_t switches_between_polls_;
  const pid_t process_;
  const Poll poll_;
};

}  // namespace rehearse::exec
