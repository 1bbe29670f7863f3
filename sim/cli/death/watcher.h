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

// A second process that reports the death of this process. This process cannot report its own death, because a signal
// handler may not do that much, and because the crash may have damaged memory. The constructor forks, so this process
// must not have other threads.
//
// While it exists, it does what CrashRecordScope describes. In addition, a second SIGINT or SIGTERM
// (end_at_second_interrupt()) and end_early() end the process at once, but with a report. Only one may exist at a time.
class Watcher {
 public:
  // Runs in the second process with the crash record. Returns the exit code of the process that dies,
  // which is another one if a check of Rehearse itself has failed.
  using Tell = std::function<int(const CrashRecord& crash)>;

  explicit Watcher(const Tell& tell);  // throws std::system_error
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  // Call this on another thread if the run exceeds its time limit. Ends this process; the crash record then has the
  // signal SIGXCPU.
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
