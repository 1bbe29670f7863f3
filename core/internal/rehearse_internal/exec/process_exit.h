// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

// For a process that is one rank: reports that the program ends the process in the middle of the rank's body.
namespace rehearse::exec {

// While it lives, the first call of exit(), quick_exit(), _exit() or std::terminate() on any thread of this process
// calls `handler` with the reason: "exit(3) was called; ...", or the text of the uncaught exception. If the handler
// returns, the process ends as the program wants. But a thread on which RankAborted causes std::terminate() calls no
// handler and only waits: another thread, which ended the world, will end the process. Forked processes are not
// affected. Only one handler may exist at a time.
class ProcessExitHandler {
 public:
  using Handler = std::function<void(const std::string& what)>;

  explicit ProcessExitHandler(Handler handler);
  ProcessExitHandler(const ProcessExitHandler&) = delete;
  ProcessExitHandler& operator=(const ProcessExitHandler&) = delete;
  ~ProcessExitHandler();

 private:
  const Handler handler_;
};

}  // namespace rehearse::exec
