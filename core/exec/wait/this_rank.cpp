// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/this_rank.h>

#include <rehearse/exec/observer.h>
#include <rehearse/hash/word_hash.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "exec/executor/rank_table.h"
#include "exec/executor/switcher.h"
#include "exec/executor/world_parts.h"
#include "polling.h"
#include "suspension.h"

namespace rehearse::exec {

namespace this_rank {
namespace {

class Alarm final : public Timer {
 public:
  Alarm(Fiber& fiber, VirtualTime due) : fiber_(fiber) { fiber_.world->timers.arm(*this, due); }
  ~Alarm() override { fiber_.world->timers.cancel(*this); }

 private:
  void fire() override { fiber_.world->switcher.make_runnable(fiber_); }

  Fiber& fiber_;
};

}  // namespace

bool is_fiber() noexcept { return current_fiber() != nullptr; }
int rank() { return require_fiber("this_rank::rank()").rank; }
std::uint32_t fiber_of_rank() { return require_fiber("this_rank::fiber_of_rank()").fiber_of_rank; }
std::uint32_t thread_of_rank() noexcept {
  const Fiber* const fiber = current_fiber();
  return fiber != nullptr && fiber->is_thread ? fiber->fiber_of_rank : 0;
}
bool is_callback() noexcept {
  const Fiber* const fiber = current_fiber();
  return fiber != nullptr && !fiber->is_main() && !fiber->is_thread;
}
VirtualTime now() { return require_fiber("this_rank::now()").world->clock.now(); }

void yield() { exec::yield(require_fiber("this_rank::yield()")); }

void give_way() noexcept {
  if (Fiber* const fiber = current_fiber()) fiber->world->switcher.give_way(*fiber);
}

void preempt(Access access) noexcept {
  if (Fiber* const fiber = current_fiber()) fiber->world->switcher.preempt(*fiber, access);
}

bool preempts() noexcept {
  const Fiber* const fiber = current_fiber();
  return fiber != nullptr && fiber->world->options.preempt;
}

Access access_to(std::string_view kind, std::string_view name, bool writes) noexcept {
  const Fiber* const fiber = current_fiber();
  if (fiber == nullptr || !fiber->world->switcher.records_accesses()) return {};
  WordHash hash(1);
  hash.add(kind);
  hash.add(name);
  return {hash.value() | 1, writes};  // never 0, which means unknown
}

void poll(const Observer* asked, Access access) { exec::poll(require_fiber("this_rank::poll()"), asked, access); }

void look(Access access) { exec::look(require_fiber("this_rank::look()"), access); }

void sleep_for(VirtualDuration duration, const char* doing) {
  Fiber& fiber = require_fiber("this_rank::sleep_for()");
  Alarm alarm(fiber, later(fiber.world->clock.now(), duration));
  suspend_blocked(fiber, FixedObserver(doing));
}

void pause(VirtualDuration duration, const char* doing) noexcept {
  Fiber& fiber = require_fiber("this_rank::pause()");
  Alarm alarm(fiber, later(fiber.world->clock.now(), duration));
  static_cast<void>(suspend_or_end(fiber, FixedObserver(doing)));
}

void spend(VirtualDuration duration, const char* doing) {
  Fiber& fiber = require_fiber("this_rank::spend()");
  // The sleep resets the counts of polls and clock reads in a row, but a poll that takes time is still a poll.
  const auto polls = fiber.polls;
  const auto reads = fiber.clock_reads;
  sleep_for(duration, doing);
  fiber.polls = polls;
  fiber.clock_reads = reads;
}

void wait_for_the_end(const Observer& observer) {
  Fiber& fiber = require_fiber("this_rank::wait_for_the_end()");
  for (;;) suspend_blocked(fiber, observer);
}

void note_given_up(const Observer& observer) {
  Fiber& fiber = require_fiber("this_rank::note_given_up()");
  fiber.world->ranks.note_given_up(fiber.rank, observer, fiber.world->clock.now());
}

}  // namespace this_rank
}  // namespace rehearse::exec
