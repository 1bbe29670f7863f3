// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <cstddef>

namespace rehearse::exec {

// While it lives, a fiber that runs into its guard page says so on stderr (rank, stack size, the option to raise)
// before the process ends by SIGSEGV as it would have. Other faults go to whoever handled them before.
class StackOverflowGuard {
 public:
  // `stack_bytes`: of the fibers of this thread's world, for the message.
  explicit StackOverflowGuard(std::size_t stack_bytes);
  StackOverflowGuard(const StackOverflowGuard&) = delete;
  StackOverflowGuard& operator=(const StackOverflowGuard&) = delete;
  ~StackOverflowGuard();

 private:
  struct sigaction previous_{};
  stack_t previous_stack_{};
};

}  // namespace rehearse::exec
