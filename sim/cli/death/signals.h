// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <string_view>

#include "cli/death/crash_record.h"

namespace rehearse::cli {

// What the first signal says on stderr.
inline constexpr std::string_view kRunInterrupted =
    "interrupted: the run ends at its next switch, and its report follows; a rank that computes without end "
    "is stopped by a second Ctrl-C, which ends the process at once\n";
inline constexpr std::string_view kSweepInterrupted =
    "interrupted: what the sweep found so far follows; a second Ctrl-C ends the process at once\n";

inline constexpr std::string_view kRanksInterrupted =
    "interrupted: all ranks are asked to end, and what they tell follows; a second Ctrl-C ends them at once\n";

// While it lives, the first SIGINT or SIGTERM says `note` and asks the run to end
// (rehearse_internal/exec/interrupt.h), so that report, log and trace are still written; the second one ends the
// process at once. One at a time.
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

// What a second signal does while an InterruptibleScope lives: `handler` runs; null, as in the beginning, ends
// the process at once. During `handler` a third one does so.
using SecondInterrupt = void (*)(int signal, siginfo_t* info, void* context);
void end_at_second_interrupt(SecondInterrupt handler);

// While it lives, SIGINT and SIGTERM wait: between fork() and what a new process makes of them they would run
// the other one's handlers in it.
class SignalsHeld {
 public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

 private:
  sigset_t before_;
};

// For the rest of this process's life: signals that go to all processes of a job are ignored.
void leave_signals_to_others();

// The same in a worker of a sweep, which ends its workers itself: it asks by SIGXCPU that the run under way ends
// (it then ends as Ending::interrupted), and when that does not help once more, which notes where the rank
// computes.
void obey_the_sweep(CrashRecord& crash);

// For the whole process: a reader that goes away (`| head`) costs what is still printed, not the run and its
// files; and a standard stream that was closed stays so, whatever files are opened later.
void expect_lost_readers();

}  // namespace rehearse::cli
