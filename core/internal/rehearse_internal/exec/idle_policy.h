// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/executor.h>

namespace rehearse::exec {

// The state of the world when no fiber can run.
struct IdleFacts {
  VirtualTime now{};
  std::optional<VirtualTime> due;  // when the next timer is due; nullopt: no timer is armed
  bool any_moves_on = false;       // TimerQueue::any_moves_on()
  bool any_polls = false;          // a fiber polls; see this_rank::poll()
  // A fiber waits for something that another rank's system call may change (a pipe, a lock).
  bool any_in_kernel = false;
  // In real time: a fiber waits for something that a thread outside of ranks may signal.
  bool any_waits_in_libc = false;
};

// How a run that cannot go on ends, and the text for RunOutcome::stop_reason.
struct IdleEnd {
  Ending ending = Ending::deadlock;
  std::string why;
};

// The executor's next action.
struct IdleStep {
  enum class Kind {
    poll_again,     // fibers that poll or wait in the kernel look again; then the runnable ones run
    let_time_pass,  // until `to`: timers fire, and polling fibers look again if `poll` is set
    end,            // the run ends as `end` says
  };

  static IdleStep poll_again() { return {}; }
  static IdleStep let_time_pass(VirtualTime to) {
    IdleStep step;
    step.kind = Kind::let_time_pass;
    step.to = to;
    return step;
  }
  static IdleStep end_run(Ending ending, std::string why) {
    IdleStep step;
    step.kind = Kind::end;
    step.end = {ending, std::move(why)};
    return step;
  }

  Kind kind = Kind::poll_again;
  VirtualTime to{};
  IdleEnd end;
  bool poll = true;    // for let_time_pass
  bool moved = false;  // the ranks have made progress, so a recorded hang is over
  bool hangs = false;  // only timeouts can still happen; the executor first records who waits (RunOutcome::hang)
  std::optional<VirtualTime> hung_since;  // set if the hang began before now
};

// Decides what happens when no fiber can run. The executor's own policy is VirtualIdlePolicy: time jumps to the next
// timer, and a world in which nothing can happen any more ends. If ranks have devices, an idle world waits for them:
// next() looks at the devices, and may wake fibers.
//
// One object per run, called on the executor's thread. next() and time_passed() are called outside of every fiber:
// next() only while no fiber can run, time_passed() after timers have fired. Must not throw.
class IdlePolicy {
 public:
  virtual ~IdlePolicy() = default;

  // A rank has done something other than poll; other ranks may be polling for what it wrote.
  void note_step() noexcept { stepped_ = true; }
  // Something has happened for which other fibers may wait or poll: a fiber was notified, has ended or has begun, a
  // rank has called a group, or a store has changed.
  void note_progress() noexcept { progress_ = true; }
  // A polling fiber has read the clock, so it may go on when time passes.
  void note_clock_read() noexcept { clock_was_read_ = true; }

  // Called every ExecutorOptions::switches_between_polls switches while fibers can run, inside or outside of a fiber.
  // Looks for events from outside of the ranks, and may wake fibers.
  virtual void poll() noexcept {}

  virtual IdleStep next(const IdleFacts& facts) = 0;

  // Called after each step that let time pass, when its timers have fired. Returns how the run must end now; nullopt:
  // it goes on.
  virtual std::optional<IdleEnd> time_passed() = 0;

  // True if the run will soon end as a livelock unless something happens. Then it is worth the cost to note what each
  // polling fiber looks at: at the end, most of them sleep between two looks.
  virtual bool is_near_livelock() const noexcept { return false; }

 protected:
  // Set by the note_*() functions. next() clears each flag that it reads.
  bool stepped_ = false;
  bool progress_ = false;
  bool clock_was_read_ = false;
};

}  // namespace rehearse::exec
