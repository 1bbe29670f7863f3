// SPDX-License-Identifier: BSD-3-Clause
#include "polling.h"

#include <string>
#include <vector>

#include <rehearse_internal/exec/idle_policy.h>

#include "exec/executor/pollers.h"
#include "exec/executor/switcher.h"
#include "exec/executor/world_parts.h"
#include "suspension.h"

namespace rehearse::exec {
namespace {

// How many clock reads in a row count as measuring, not as polling. DDP's reducer reads the clock several times for
// each parameter of a backward pass without a blocking call in between, and that must not let time pass.
constexpr std::uint32_t kClockReadsFree = 10'000;

// How many looks in a row leave a fiber among those that can run. With patience, code that looks at one thing after
// another may be early each time.
constexpr std::uint32_t kLooksFree = 1;
constexpr std::uint32_t kLooksFreeWithPatience = 3;

// `asked`: the polling call; null: unknown.
class PollObserver final : public Observer {
 public:
  explicit PollObserver(const Observer* asked) : asked_(asked) {}

  bool is_opaque() const override { return asked_ == nullptr; }

 private:
  Wait describe() const override {
    if (asked_ == nullptr) return {"a poll of something that does not change"};
    Wait wait = asked_->wait();
    wait.waits_on += ", polled without a change";
    return wait;
  }

  const Observer* asked_;
};

// Suspends until the idle policy lets pollers look again.
void poll_again(Fiber& fiber, const Observer* asked = nullptr) {
  const auto polls = fiber.polls + 1;
  const auto reads = fiber.clock_reads;
  auto& world = *fiber.world;
  if (reads > 0) world.idle_policy.note_clock_read();
  world.pollers.add(fiber, false);
  const PollObserver observer(asked);
  if (!suspend_or_end(fiber, observer)) {
    world.pollers.remove(fiber);
    abort_wait(fiber, observer);
  }
  fiber.polls = polls;
  fiber.clock_reads = reads;
}

}  // namespace

void poll(Fiber& fiber, const Observer* asked, Access access) {
  if (asked != nullptr && fiber.world->idle_policy.is_near_livelock()) [[unlikely]]
    fiber.world->outcome.note_look(fiber, PollObserver(asked));
  const auto polls = fiber.polls + 1;
  if (polls > (is_patient(*fiber.world) ? kLooksFreeWithPatience : kLooksFree)) return poll_again(fiber, asked);
  look(fiber, access);
  fiber.polls = polls;
}

void look(Fiber& fiber, Access access) {
  const auto polls = fiber.polls;
  fiber.next_access = access;
  yield(fiber);
  fiber.next_access = {};
  fiber.polls = polls;
}

void poll_clock(Fiber& fiber) {
  if (fiber.world->clock.passes_by_itself()) {
    fiber.clock_reads = 1;
  } else if (++fiber.clock_reads > kClockReadsFree) {
    poll_again(fiber);
  }
}

void wait_in_kernel(Fiber& fiber, const Observer& observer, bool first) {
  auto& world = *fiber.world;
  if (first) world.idle_policy.note_step();
  world.pollers.add(fiber, true);
  const bool goes_on = suspend_or_end(fiber, observer);
  fiber.in_kernel = false;
  if (goes_on) return;
  world.pollers.remove(fiber);
  abort_wait(fiber, observer);
}

void poll_in_kernel(const Fiber& fiber) noexcept {
  auto& world = *fiber.world;
  world.pollers.release_in_kernel([&](Fiber& looker) { world.switcher.make_runnable(looker); });
}

}  // namespace rehearse::exec
