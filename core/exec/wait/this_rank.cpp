// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/this_rank.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/timer_queue.h>

#include "exec/executor/executor_impl.h"

namespace rehearse::exec {

void suspend_blocked(Fiber& fiber, const Observer& observer) {
  if (!suspend_or_end(fiber, observer)) meet_the_end(fiber, observer);
}

void meet_the_end(Fiber& fiber, const Observer& observer) { fiber.executor->meet_the_end(fiber, &observer); }

bool suspend_or_end(Fiber& fiber, const Observer& observer) {
  auto& executor = *fiber.executor;
  if (executor.must_end(fiber)) return false;
  fiber.looks = 0;
  fiber.clock_reads = 0;
  if (!fiber.polling) executor.note_step();
  fiber.observer = &observer;
  fiber.state = Fiber::State::blocked;
  executor.suspend(fiber);
  fiber.observer = nullptr;
  if (executor.ending()) [[unlikely]]
    executor.note_where_it_hung(fiber, observer);
  return !fiber.abort;
}

void make_runnable(Fiber& fiber) noexcept { fiber.executor->make_runnable(fiber); }

namespace this_rank {
namespace {

class Alarm final : public Timer {
 public:
  Alarm(Fiber& fiber, VirtualTime due) : fiber_(fiber) { fiber_.executor->timers.arm(*this, due); }
  ~Alarm() override { fiber_.executor->timers.cancel(*this); }

 private:
  void fire() override { make_runnable(fiber_); }

  Fiber& fiber_;
};

}  // namespace

bool is_fiber() noexcept { return current_fiber() != nullptr; }
int rank() { return require_fiber("this_rank::rank()").rank; }
std::uint32_t fiber_of_rank() { return require_fiber("this_rank::fiber_of_rank()").fiber_of_rank; }
VirtualTime now() { return require_fiber("this_rank::now()").executor->clock.now(); }

void yield() {
  Fiber& fiber = require_fiber("this_rank::yield()");
  fiber.executor->yield(fiber);
}

void preempt() noexcept {
  if (Fiber* const fiber = current_fiber()) fiber->executor->preempt(*fiber);
}

void poll() {
  Fiber& fiber = require_fiber("this_rank::poll()");
  fiber.executor->poll(fiber, false);
}

void sleep_for(VirtualDuration duration, const char* doing) {
  Fiber& fiber = require_fiber("this_rank::sleep_for()");
  Alarm alarm(fiber, fiber.executor->clock.now() + duration);
  suspend_blocked(fiber, FixedObserver(doing));
}

void note_given_up(const Observer& observer) {
  Fiber& fiber = require_fiber("this_rank::note_given_up()");
  fiber.executor->note_given_up(fiber.rank, observer);
}

}  // namespace this_rank
}  // namespace rehearse::exec
