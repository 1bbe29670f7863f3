// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <cstddef>

namespace rehearse::exec {

// While it lives, a fiber that runs into its guard page writes a message to stderr (rank, stack size, the option to
// raise). Every SIGSEGV, this one too, goes to the handler before the first of the guards that live. If there is none,
// it ends the process. Several threads may have guards at the same time.
class StackOverflowGuard {
 public:
  // `stack_bytes`: the stack size of the fibers of this thread's world, for the message.
  explicit StackOverflowGuard(std::size_t stack_bytes);
  StackOverflowGuard(const StackOverflowGuard&) = delete;
  StackOverflowGuard& operator=(const StackOverflowGuard&) = delete;
  ~StackOverflowGuard();

 private:
  stack_t previous_stack_{};
};

}  // namespace rehearse::exec
