// SPDX-License-Identifier: BSD-3-Clause
// A rank is a process to its program, which may end it with exit(). Here that would end all ranks, and destroy what they
// still use: the rank has failed instead, and the others go on.
#include <array>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "real.h"
#include "world_state.h"

namespace rehearse::exec::interpose {

[[noreturn]] void exit_here(int status) REHEARSE_INTERPOSES("exit");

namespace {

constinit Real<void (*)(int)> real_exit("exit");

// Thrown, so that reports know where.
[[noreturn]] void fail(Fiber& fiber, int status) {
  try {
    throw std::runtime_error(
        fmt::format("exit({}) was called; a rank ends by returning from its body, or fails by an exception", status));
  } catch (...) {
    fiber.executor->terminate(fiber);
  }
}

}  // namespace

void exit_here(int status) {
  if (Fiber* const fiber = current_fiber()) {
    if (getpid() == fiber->executor->process) fail(*fiber, status);
    // A process that the rank has forked: its copy of the world, on a stack of which we are, has no destructor.
    std::fflush(nullptr);
    _exit(status);
  }
  real_exit(status);
  __builtin_unreachable();
}

std::span<const Interposed> exit_functions() {
  static const std::array functions = {
      Interposed{"exit", reinterpret_cast<const void*>(exit_here)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
