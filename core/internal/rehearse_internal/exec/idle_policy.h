// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/executor.h>

namespace rehearse::exec {

// What is known when no fiber can run.
struct IdleFacts {
  VirtualTime now{};
  std::optional<VirtualTime> due;  // of the next timer; none: no timer is armed
  bool any_moves_on = false;       // TimerQueue::any_moves_on()
  bool any_polls = false;          // a fiber looks again and again; see this_rank::poll()
  bool any_in_kernel = false;      // a fiber waits for what another rank's system call may change (a pipe, a lock)
  bool any_waits_in_libc = false;  // in real time: a fiber waits for what a thread that is no rank's may signal
};

// How a run ends that cannot go on, and the text for RunOutcome::stop_reason.
struct IdleEnd {
  Ending ending = Ending::deadlock;
  std::string why;
};

// What the executor is to do.
struct IdleStep {
  enum class Kind {
    look_again,     // all that poll or wait in the kernel look again; then whoever can run does
    let_time_pass,  // to `to`: timers fire, and those that poll look again if `look` says so
    end,            // `end` says how
  };

  static IdleStep look_again() { return {}; }
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

  Kind kind = Kind::look_again;
  VirtualTime to{};
  IdleEnd end;
  bool look = true;    // of let_time_pass
  bool moved = false;  // the ranks have come further: a hang that was noted is over
  bool hangs = false;  // nobody can do anything but give up: who waits is noted first; see RunOutcome::hang
  std::optional<VirtualTime> hung_since;  // if that was before now
};

// What happens when no fiber can run. A mode chooses it, with its Clock and its Fabric. In virtual time it is the
// executor's own: time jumps to the next timer, and a world in which nothing can happen any more ends. Where ranks have
// devices, to be idle is to wait for them: next() looks at them, which may wake fibers.
//
// One object a run. Called on the executor's thread; next() and time_passed() outside of every fiber, and only while
// no fiber can run. Must not throw.
class IdlePolicy {
 public:
  virtual ~IdlePolicy() = default;

  // A rank has done something other than look: what it wrote may be what others look at.
  void note_step() noexcept { stepped_ = true; }
  // Something has happened that others waited for: one was notified, has ended, or has begun.
  void note_progress() noexcept { progress_ = true; }
  // One that polls has read the clock: it may go on when time passes.
  void note_clock_read() noexcept { clock_was_read_ = true; }

  // Every ExecutorOptions::switches_between_looks switches, while fibers can run: a look at what comes from outside,
  // which may wake others. In any context.
  virtual void look() noexcept {}

  virtual IdleStep next(const IdleFacts& facts) = 0;

  // After the timers of a step that let time pass: whether the run is to end for it.
  virtual std::optional<IdleEnd> time_passed() = 0;

 protected:
  // Since they were last taken.
  bool stepped_ = false;
  bool progress_ = false;
  bool clock_was_read_ = false;
};

}  // namespace rehearse::exec
