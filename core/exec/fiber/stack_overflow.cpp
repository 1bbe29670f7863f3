// SPDX-License-Identifier: BSD-3-Clause
#include "stack_overflow.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/signal_io.h>
#include <rehearse_internal/exec/stack_fault.h>

#include "fiber.h"
#include "stack_pool.h"

namespace rehearse::exec {
namespace {

// Worlds of several threads share the handler. The first guard installs it, and the last one restores the handler
// before.
std::mutex g_guards_mutex;
int g_guards = 0;
struct sigaction g_previous_action{};
constinit thread_local std::size_t t_stack_bytes = 0;  // for fibers of the world on this thread, as requested

void on_fault(int signal, siginfo_t* info, void* context) {
  if (const auto stack_bytes = overflowed_stack_bytes(info->si_addr)) {
    char line[256];
    const auto end = fmt::format_to_n(line, sizeof line,
                                      "rehearse: stack overflow on rank {}: its fiber's stack has {} KiB; raise "
                                      "`stack_bytes` in the world's options (`stack` under [world] in a scenario)\n",
                                      fiber_of_thread()->rank, stack_bytes >> 10);
    write_at_once(STDERR_FILENO, line, std::min(end.size, sizeof line));
  }
  if ((g_previous_action.sa_flags & SA_SIGINFO) != 0) {
    g_previous_action.sa_sigaction(signal, info, context);
  } else if (g_previous_action.sa_handler != SIG_DFL && g_previous_action.sa_handler != SIG_IGN) {
    g_previous_action.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);                // the fault repeats on return and ends the process
    if (info->si_code <= 0) ::raise(signal);  // a signal sent by a process does not repeat
  }
}

}  // namespace

std::size_t overflowed_stack_bytes(const void* address) noexcept {
  const Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr || !StackPool::in_guard_page(fiber->stack, address)) return 0;
  return t_stack_bytes;
}

StackOverflowGuard::StackOverflowGuard(std::size_t stack_bytes) {
  t_stack_bytes = stack_bytes;
  // A handler cannot run on the stack that has just overflowed.
  thread_local std::vector<char> signal_stack(std::size_t{64} << 10);
  stack_t stack{};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  ::sigaltstack(&stack, &previous_stack_);
  const std::lock_guard lock(g_guards_mutex);
  if (g_guards++ > 0) return;
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &g_previous_action);
}

StackOverflowGuard::~StackOverflowGuard() {
  {
    const std::lock_guard lock(g_guards_mutex);
    if (--g_guards == 0) ::sigaction(SIGSEGV, &g_previous_action, nullptr);
  }
  if (previous_stack_.ss_sp == nullptr) previous_stack_.ss_flags = SS_DISABLE;
  ::sigaltstack(&previous_stack_, nullptr);
}

}  // namespace rehearse::exec
