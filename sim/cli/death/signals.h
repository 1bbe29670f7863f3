// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <string_view>

#include "cli/death/crash_record.h"

namespace rehearse::cli {

// The messages that the first signal prints on stderr: for a run, for a sweep, and for ranks that are processes.
inline constexpr std::string_view kRunInterrupted =
    "interrupted: the run ends at the next call of a rank that can be ended, and its report follows; if a rank "
    "computes without end, a second Ctrl-C ends the process at once\n";
inline constexpr std::string_view kSweepInterrupted =
    "interrupted: what the sweep found so far follows; a second Ctrl-C ends the process at once\n";

inline constexpr std::string_view kRanksInterrupted =
    "interrupted: all ranks are asked to end, and what they tell follows; a second Ctrl-C ends them at once\n";

// While it exists, the first SIGINT or SIGTERM prints `note` and asks the run to end
// (rehearse_internal/exec/interrupt.h), so that the run still writes report, log and trace. The second one ends the
// process at once, unless end_at_second_interrupt() has set a handler. Only one may exist at a time.
class InterruptibleScope {
 public:
  explicit InterruptibleScope(std::string_view note = kRunInterrupted);
  InterruptibleScope(const InterruptibleScope&) = delete;
  InterruptibleScope& operator=(const InterruptibleScope&) = delete;
  ~InterruptibleScope();

 private:
  struct sigaction interrupt_before_{};
  struct sigaction terminate_before_{};
};

// The first signal that came while the current InterruptibleScope exists: SIGINT or SIGTERM. 0: none.
int first_signal() noexcept;

// Makes `handler` run at a second signal while an InterruptibleScope exists. Null, the initial value: the second signal
// ends the process at once. If the same signal comes once more, while `handler` runs or later, it ends the process at
// once.
using SecondInterrupt = void (*)(int signal, siginfo_t* info, void* context);
void end_at_second_interrupt(SecondInterrupt handler);

// While it exists, SIGINT and SIGTERM are blocked. Otherwise, between fork() and the new process's own setup, the
// parent's handlers would run in the new process.
class SignalsHeld {
 public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

 private:
  sigset_t before_;
};

// From now on this process ignores signals that go to all processes of a job.
void leave_signals_to_others();

// Call this in a worker of a sweep. Does what leave_signals_to_others() does, because the sweep itself ends its
// workers' runs. In addition, a first SIGXCPU asks the current run to end (as Ending::interrupted). If the run goes on,
// a second one records in `crash` where the rank computes.
void obey_the_sweep(CrashRecord& crash);

// Prepares the whole process for lost readers. A reader that goes away (`| head`) then costs only further output, not
// the run and its files. A standard stream that was closed still fails when it is used: no file that the process opens
// later takes its number.
void expect_lost_readers();

}  // namespace rehearse::cli
