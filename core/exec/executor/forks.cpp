// SPDX-License-Identifier: BSD-3-Clause
#include "forks.h"

#include <algorithm>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/signal_io.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {
namespace {

int g_forked_by = -1;  // the forking rank, in a process that a rank has forked
pthread_t g_id = 0;    // of the thread that forked, in a process that has left the world

void leave_world() noexcept {
  // libc declares pthread_self() const, so the compiler would move a direct call behind the end of the fiber.
  pthread_t (*volatile self)() = &pthread_self;
  const auto id = self();
  interpreter()->note_fork();
  t_current_fiber = nullptr;
  g_id = id;
}

}  // namespace

void note_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    const Fiber* const fiber = current_fiber();
    if (fiber == nullptr) return;
    if (interpreter() != nullptr) return leave_world();
    g_forked_by = fiber->rank;
    request_interrupt();  // the next switch notices it
  });
  static_cast<void>(registered);
}

pthread_t id_of_forked(pthread_t id) noexcept { return g_id != 0 ? g_id : id; }

void leave_if_forked(pid_t process) noexcept {
  if (getpid() == process) return;
  char line[200];
  const auto end = fmt::format_to_n(line, sizeof line,
                                    "rehearse: a process that rank {} forked went on in the rank's body, which is not "
                                    "its own: it may call exec or _exit, and nothing that waits\n",
                                    g_forked_by);
  write_at_once(STDERR_FILENO, line, std::min(end.size, sizeof line));
  constexpr int kInternalError = 70;
  for (;;) syscall(SYS_exit_group, kInternalError);
}

}  // namespace rehearse::exec
