// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

// A process that is a rank, and whose program ends it with exit() and the like in the middle of the rank's body.
namespace rehearse::exec {

// While it lives, exit(), quick_exit() and _exit() on any thread of this process call `handler` with what was called:
// "exit(3) was called; ...". If that returns, the process ends as the program wants. Processes that it forks end as
// they like. One at a time.
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
