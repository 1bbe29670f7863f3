// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <functional>

#include <rehearse_internal/exec/watchdog.h>
#include <rehearse_internal/job/early_end.h>
#include <sys/types.h>

#include "cli/death/crash_record.h"
#include "cli/death/pipe.h"

namespace rehearse::cli {

// A process beside this one that reports its death in its place: a signal handler can do nothing of the kind,
// and the crash may be the memory's. Made by fork, so there must be no threads.
//
// While it lives: what CrashRecordScope says, and a second SIGINT or SIGTERM (end_at_second_interrupt()) ends the
// process at once, but reported; so is what end_early() ends. One at a time.
class Watcher {
 public:
  // Runs in the other process, with what was noted; gives the exit code with which this one ends.
  using Tell = std::function<int(const CrashRecord& crash)>;

  explicit Watcher(const Tell& tell);  // throws std::system_error
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  // On another thread: ends the process that does not end when its time is over, and reports it as SIGXCPU.
  [[noreturn]] static void end_overdue(const exec::Found& found);

 private:
  static void note(const exec::Found& found);
  static std::optional<int> told();
  static void end_early(const EarlyEnd& end);
  static void on_second_interrupt(int signal, siginfo_t* info, void* context);

  SharedCrashRecord crash_ = make_shared_with_forks<CrashRecord>();
  Pipe deaths_ = make_pipe();
  Pipe codes_ = make_pipe();
  pid_t process_ = -1;
  std::optional<CrashRecordScope> scope_;
};

}  // namespace rehearse::cli
