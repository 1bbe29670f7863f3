// SPDX-License-Identifier: BSD-3-Clause
// What happens when no fiber can run: lookers look again, timers fire, time passes, or the world ends.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor_impl.h"

namespace rehearse::exec {
namespace {

constexpr std::size_t kReleaseEndedAt = 8;
// Timeouts in a row, with nothing else that moved in between, of programs that try again for ever. A loop of waits of
// 100 ms comes past c10d's default timeout of 30 minutes.
constexpr std::uint64_t kGiveUpsMax = 20'000;

constexpr VirtualDuration kClockStepMin = std::chrono::microseconds(1);
constexpr VirtualDuration kClockStepMax = std::chrono::seconds(1);

// Reads of the clock in a row that are taken for measuring, not for polling. DDP's reducer reads it some times for
// each parameter of a backward pass without a blocking call in between: that must not let time pass.
constexpr std::uint32_t kClockReadsFree = 10'000;

class PollObserver final : public Observer {
 public:
  std::string describe() const override {
    return "a poll (it looks again and again at something that does not change)";
  }
  bool is_opaque() const override { return true; }
};

}  // namespace

void RankExecutor::Impl::poll(Fiber& fiber, bool reads_clock) {
  if (reads_clock && ++fiber.clock_reads <= kClockReadsFree) return;
  if (fiber.looks == 0 && !reads_clock) {
    yield(fiber);
    fiber.looks = 1;
    return;
  }
  const auto looks = fiber.looks + 1;
  const auto reads = fiber.clock_reads;
  clock_was_read_ |= reads > 0;
  pollers_.push_back(&fiber);
  fiber.polling = true;
  const PollObserver observer;
  if (!suspend_or_end(fiber, observer)) {
    if (std::exchange(fiber.polling, false)) std::erase(pollers_, &fiber);
    meet_the_end(fiber, &observer);
  }
  fiber.looks = looks;
  fiber.clock_reads = reads;
}

void RankExecutor::Impl::wait_in_kernel(Fiber& fiber, const Observer& observer, bool first) {
  if (first) note_step();
  pollers_.push_back(&fiber);
  fiber.polling = fiber.in_kernel = true;
  const bool goes_on = suspend_or_end(fiber, observer);
  fiber.in_kernel = false;
  if (goes_on) return;
  if (std::exchange(fiber.polling, false)) std::erase(pollers_, &fiber);
  meet_the_end(fiber, &observer);
}

void RankExecutor::Impl::look_in_kernel() noexcept {
  std::erase_if(pollers_, [this](Fiber* fiber) {
    if (!fiber->in_kernel) return false;
    fiber->polling = false;
    make_runnable(*fiber);
    return true;
  });
}

bool RankExecutor::Impl::release_pollers() {
  if (pollers_.empty()) return false;
  for (Fiber* const fiber : pollers_) {
    fiber->polling = false;
    make_runnable(*fiber);
  }
  pollers_.clear();
  clock_was_read_ = false;
  return true;
}

void RankExecutor::Impl::let_time_pass(VirtualTime to) {
  clock.advance_to(to);
  timers.fire_due(clock.now());
  if (progress_) {
    timed_looks_ = 0;
  } else if (++timed_looks_ > options.idle_timed_looks_max) {
    stop(Ending::livelock,
         fmt::format("{} looks at the clock or short sleeps while nothing else happened", timed_looks_));
  }
}

// Only pollers are left. Returns whether they are to look again.
bool RankExecutor::Impl::idle_polls() {
  const bool stepped = std::exchange(stepped_, false);
  if (std::exchange(progress_, false)) {
    idle_looks_ = 0;
    timed_looks_ = 0;
    clock_step_ = {};
    hang_.clear();
    return true;
  }
  // Before time passes, everybody has looked at what the others left behind.
  if (stepped) return true;
  const auto due = timers.next_due();
  if (clock_was_read_) {
    // In steps, for a poller may have a time limit of its own, and that may come first.
    clock_step_ = std::clamp(clock_step_ * 2, kClockStepMin, kClockStepMax);
    const auto next = clock.now() + clock_step_;
    let_time_pass(due ? std::min(*due, next) : next);
  } else if (due && timers.any_moves_on()) {
    let_time_pass(*due);
  } else if (++idle_looks_ <= options.idle_looks_max) {
    return true;  // it may be a loop that gives up after so many looks
  } else if (due) {
    note_hang();
    let_time_pass(*due);
  } else {
    stop(Ending::livelock, fmt::format("{} looks at things that nobody is left to change", options.idle_looks_max));
  }
  return !ending_;
}

// Also where nobody polls.
bool RankExecutor::Impl::only_in_kernel() const noexcept {
  return std::all_of(pollers_.begin(), pollers_.end(), [](const Fiber* fiber) { return fiber->in_kernel; });
}

// Has anything been done since they looked?
bool RankExecutor::Impl::looks_in_kernel_are_due() noexcept {
  if (pollers_.empty()) return false;
  const bool stepped = std::exchange(stepped_, false);
  if (!std::exchange(progress_, false)) return stepped;
  timed_looks_ = 0;
  give_ups_ = 0;
  hang_.clear();
  return true;
}

void RankExecutor::Impl::idle() {
  if (ended_since_release_ >= kReleaseEndedAt || scheduler_->has_foreign()) {
    ended_since_release_ = 0;
    scheduler_->run_others();
    if (!runnable_.empty()) return;
  }
  if (!only_in_kernel()) {
    if (idle_polls()) release_pollers();
    return;
  }
  if (looks_in_kernel_are_due()) {
    release_pollers();
    return;
  }
  if (const auto due = timers.next_due()) {
    if (std::exchange(progress_, false)) {
      timed_looks_ = 0;
      give_ups_ = 0;
      hang_.clear();
    }
    if (!timers.any_moves_on()) {
      note_hang();
      if (++give_ups_ > kGiveUpsMax) {
        return stop(Ending::livelock, fmt::format("{} timeouts in a row while nothing else happened", kGiveUpsMax));
      }
    }
    let_time_pass(*due);
    return;
  }
  stop(Ending::deadlock, "no rank can go on and no timer is running");
}

BlockedFiber RankExecutor::Impl::describe(const Fiber& fiber, const Observer* observer) const {
  BlockedFiber entry;
  entry.rank = fiber.rank;
  entry.fiber_of_rank = fiber.fiber_of_rank;
  entry.polls = fiber.polling && !fiber.in_kernel;
  if (observer == nullptr) return entry;
  entry.waits_on = observer->describe();
  entry.call = observer->call();
  entry.waits_for = observer->waits_for();
  entry.any_rank = observer->any_rank_may_end_it();
  entry.fingerprint = observer->fingerprint();
  if (!observer->is_opaque() || explainer == nullptr) return entry;
  auto behind = explainer->explain_wait(fiber.rank);
  if (behind.call.empty()) return entry;
  entry.waits_on = fmt::format("{}, through {}", behind.description, entry.waits_on);
  entry.call = std::move(behind.call);
  entry.waits_for = std::move(behind.waits_for);
  return entry;
}

void RankExecutor::Impl::note_hang() {
  if (!hang_.empty()) return;
  hang_began_ = clock.now();
  for (const Fiber* const fiber : fibers_.all()) {
    if (fiber->state == Fiber::State::blocked) hang_.push_back(describe(*fiber, fiber->observer));
  }
}

}  // namespace rehearse::exec
