// SPDX-License-Identifier: BSD-3-Clause
#include "switcher.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/interrupt.h>

#include "exec/fiber/fiber_table.h"
#include "exec/time/patience.h"
#include "forks.h"
#include "world_outcome.h"
#include "world_parts.h"

namespace rehearse::exec {
namespace {

constexpr const char* kInterrupted = "interrupted";

}  // namespace

Switcher::Switcher(const WorldParts& world, Decisions& decisions, RankState& state, Poll poll)
    : outcome_(world.outcome),
      decisions_(decisions),
      clock_(world.clock),
      fibers_(world.fibers),
      idle_policy_(world.idle_policy),
      timers_(world.timers),
      patience_(world.patience),
      is_patient_(is_patient(world)),
      preempt_(world.options.preempt),
      current_fiber_(state),
      steps_max_(world.options.steps_max),
      switches_between_polls_(world.options.switches_between_polls),
      process_(world.process),
      poll_(std::move(poll)) {
  set_next_stop(0);
}

bool Switcher::stop_if_interrupted() noexcept {
  if (!interrupt_requested()) [[likely]]
    return false;
  be_interrupted();
  return true;
}

void Switcher::be_interrupted() noexcept {
  leave_if_forked(process_);
  outcome_.end(Ending::interrupted, kInterrupted);
}

// If the run ends here, counts the switch that it would have made next, as choose_next() does. A replay finds the place
// of the interruption by the number of that switch (InterruptedAgain).
void Switcher::stop_between_switches() noexcept {
  const bool goes_on = !outcome_.ended();
  const bool is_the_place =
      outcome_.switches() + 1 == interrupted_again_.before_switch && clock_.now() == interrupted_again_.at;
  if (is_the_place) outcome_.end(Ending::interrupted, kInterrupted);
  if ((stop_if_interrupted() || is_the_place) && goes_on) outcome_.count_switch();
}

// The next stop is the end of the budget, the place of an InterruptedAgain, or the next poll() for outside events,
// whichever comes first. With one number, a switch needs only one comparison.
void Switcher::set_next_stop(std::uint64_t switches) noexcept {
  const std::uint64_t between = switches_between_polls_;
  next_stop_ = between == 0 ? steps_max_ : std::min(steps_max_, switches + between - 1);
  const auto last = interrupted_again_.before_switch;
  if (last > 0) next_stop_ = std::min(next_stop_, last - 1);
}

bool Switcher::pass_stop() noexcept {
  if (outcome_.switches() > steps_max_) {
    outcome_.end(Ending::step_budget, fmt::format("more than {} switches", steps_max_));
    return false;
  }
  if (outcome_.switches() == interrupted_again_.before_switch) {
    outcome_.end(Ending::interrupted, kInterrupted);
    return false;
  }
  set_next_stop(outcome_.switches());
  // While poll_() runs, no fiber is current, as while a timer fires. poll_() may wake ranks, but must not switch or
  // change the errno of the fiber that leaves.
  const int error = errno;
  Fiber* const fiber = std::exchange(t_current_fiber, nullptr);
  poll_();
  t_current_fiber = fiber;
  errno = error;
  return true;
}

bool Switcher::time_may_pass() const noexcept {
  const auto due = timers_.next_event();
  const auto now = clock_.now();
  return due && *due > now && *due - now <= patience_.left();
}

std::uint32_t Switcher::choose_fiber_or_time() {
  runnable_.push(kTimePasses);
  const struct Pop {
    RunQueue& queue;
    ~Pop() { queue.pop(); }
  } pop{runnable_};
  return decisions_.choose(ChoiceKind::next_fiber, runnable_.candidates());
}

void Switcher::begin() { records_accesses_ = decisions_.begin(fibers_); }

std::uint32_t Switcher::choose_number(ChoiceKind kind, std::uint32_t count) noexcept {
  std::vector<std::uint32_t> candidates(count);
  std::iota(candidates.begin(), candidates.end(), 0u);
  try {
    return decisions_.choose(kind, candidates);
  } catch (...) {
    stop_by_oracle();
    return 0;
  }
}

void Switcher::stop_by_oracle() noexcept { outcome_.end(Ending::stopped, "the oracle failed"); }

// Runs on the stack of the fiber that leaves. With a thousand stacks, one more cache line of each makes a switch a
// fifth more expensive, so code that needs room in the frame (texts, checks with values) is in separate functions.
Fiber* Switcher::choose_next() noexcept {
  if (runnable_.empty()) return nullptr;
  std::uint32_t index = 0;
  if (!outcome_.ended()) {
    if (outcome_.count_switch() > next_stop_) [[unlikely]] {
      if (!pass_stop()) return nullptr;
    }
    if (stop_if_interrupted()) return nullptr;
    try {
      if (is_patient_ && time_may_pass()) [[unlikely]] {
        index = choose_fiber_or_time();
        time_chosen_ = index == runnable_.size();
        if (time_chosen_) return nullptr;
      } else {
        index = decisions_.choose(ChoiceKind::next_fiber, runnable_.candidates());
      }
    } catch (...) {
      stop_by_oracle();
      return nullptr;
    }
  } else if (!unwinds_) {
    return nullptr;
  }
  Fiber* const next = &fibers_[runnable_.take(index)];
  next->prefetch();
  if (!outcome_.ended()) decisions_.log().note_step(next->id, clock_.now());
  return next;
}

REHEARSE_LEAVES_STACK boost::fibers::context* Switcher::pick_next() noexcept {
  return current_fiber_.next_context(choose_next());
}

void Switcher::suspend(Fiber& fiber) noexcept {
  require_state(fiber, Fiber::State::running, "Switcher::suspend()");
  fiber.state = Fiber::State::blocked;
  Fiber* const next = choose_next();
  if (next == &fiber) [[unlikely]] {
    require_state(fiber, Fiber::State::runnable, "Switcher::suspend()");
    fiber.state = Fiber::State::running;  // choose_next() has called poll_(), which has woken this fiber
  } else {
    current_fiber_.switch_from(fiber, next);
  }
}

void Switcher::make_runnable(Fiber& fiber) noexcept {
  if (fiber.state != Fiber::State::blocked) return;
  fiber.state = Fiber::State::runnable;
  runnable_.push(fiber.id);
}

void Switcher::withdraw(Fiber& fiber) noexcept {
  require_state(fiber, Fiber::State::runnable, "Switcher::withdraw()");
  runnable_.take(runnable_.index_of(fiber.id));
  fiber.state = Fiber::State::blocked;
}

void Switcher::give_way(Fiber& fiber) noexcept {
  if (outcome_.ended_for(fiber)) return;
  fiber.polls = 0;
  fiber.clock_reads = 0;
  idle_policy_.note_step();
  offer_turn(fiber);
}

void Switcher::preempt(Fiber& fiber, Access access) noexcept {
  if (!preempt_ || outcome_.ended_for(fiber)) return;
  if (runnable_.empty() && !(is_patient_ && time_may_pass())) return;
  fiber.next_access = access;
  offer_turn(fiber);
  fiber.next_access = {};
}

// Lets the oracle choose among all runnable fibers, including this one.
void Switcher::offer_turn(Fiber& fiber) noexcept {
  require_state(fiber, Fiber::State::running, "Switcher::offer_turn()");
  fiber.state = Fiber::State::runnable;
  runnable_.push(fiber.id);
  Fiber* const next = choose_next();
  if (next == nullptr && !time_chosen_) {
    // The choice ended the world (for example, the oracle threw or the step budget is spent): this fiber goes on until
    // its next blocking call throws RankAborted.
    withdraw(fiber);
    fiber.state = Fiber::State::running;
  } else if (next == &fiber) {
    fiber.state = Fiber::State::running;
  } else {
    current_fiber_.switch_from(fiber, next);
  }
}

void Switcher::resume_fibers() {
  if (Fiber* const next = choose_next()) current_fiber_.give_to(*next);
}

}  // namespace rehearse::exec
