// SPDX-License-Identifier: BSD-3-Clause
#include "children.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/signal_io.h>

#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

pid_t process_waitpid(pid_t process, int* status, int options) REHEARSE_INTERPOSES("waitpid");

namespace {

constinit Real<pid_t (*)(pid_t, int*, int)> real_waitpid("waitpid");
constinit Real<int (*)(pollfd*, nfds_t, int)> real_poll("poll");

constexpr std::chrono::milliseconds kMoment{1};
std::atomic<int> g_moments_left{10'000};

// The processes that this thread has forked. Includes those that have ended and for which nobody has waited.
std::set<pid_t> children_of_thread() {
  std::set<pid_t> children;
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY));
  if (file < 0) return children;
  char text[4096];
  const auto size = read_at_once(file, text, sizeof text);
  ::syscall(SYS_close, file);
  for (const char* next = text; next < text + std::max<ssize_t>(size, 0);) {
    pid_t child = 0;
    const auto end = std::from_chars(next, text + size, child);
    if (end.ec == std::errc()) children.insert(child);
    next = end.ptr + 1;
  }
  return children;
}

bool is_alive(pid_t child) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0;
}

}  // namespace

Children::Children() {
  if (interpreter() != nullptr) of_others_ = children_of_thread();
}

bool Children::any_alive() const {
  for (const pid_t child : children_of_thread()) {
    if (!of_others_.contains(child) && is_alive(child)) return true;
  }
  return false;
}

bool Children::pass_real_time() {
  if (g_moments_left <= 0) return false;
  --g_moments_left;
  real_poll(nullptr, 0, static_cast<int>(kMoment.count()));
  return true;
}

// A call that would not wait asks whether a child has ended. Programs repeat it until the child has, with pauses in
// virtual time, in which a child gets nowhere.
pid_t process_waitpid(pid_t process, int* status, int options) {
  const auto look = [&] { return real_waitpid(process, status, options); };
  Fiber* const fiber = current_fiber();
  return fiber != nullptr && interpreter() != nullptr ? world_of(*fiber).children.wait_for(look) : look();
}

std::span<const Interposed> child_functions() {
  static const std::array functions = {Interposed{"waitpid", reinterpret_cast<const void*>(process_waitpid)}};
  return functions;
}

}  // namespace rehearse::exec::interpose
