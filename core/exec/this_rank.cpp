// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/this_rank.h>

#include <rehearse/exec/wait_queue.h>

#include "executor_impl.h"

namespace rehearse::exec {

void suspend_blocked(Fiber& fiber, const Observer& observer) {
  auto& executor = *fiber.executor;
  if (executor.must_end(fiber)) executor.meet_the_end(fiber, &observer);
  fiber.looks = 0;
  fiber.clock_reads = 0;
  fiber.observer = &observer;
  fiber.state = Fiber::State::blocked;
  executor.suspend(fiber);
  fiber.observer = nullptr;
  if (fiber.abort) executor.meet_the_end(fiber, &observer);
}

void make_runnable(Fiber& fiber) noexcept { fiber.executor->make_runnable(fiber); }

namespace this_rank {
namespace {

class SleepObserver final : public Observer {
 public:
  std::string describe() const override { return "a sleep"; }
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

void poll() {
  Fiber& fiber = require_fiber("this_rank::poll()");
  fiber.executor->poll(fiber, false);
}

void sleep_for(VirtualDuration duration) {
  Fiber& fiber = require_fiber("this_rank::sleep_for()");
  WaitQueue nobody_notifies;
  nobody_notifies.wait(SleepObserver{}, fiber.executor->clock.now() + duration);
}

}  // namespace this_rank
}  // namespace rehearse::exec
