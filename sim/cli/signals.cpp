// SPDX-License-Identifier: BSD-3-Clause
#include "signals.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <rehearse/exec/call_site.h>
#include <rehearse/exec/interrupt.h>
#include <rehearse/exec/this_rank.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

std::string_view g_note;          // set while no handler is installed
bool g_on_terminal_line = false;  // where "^C" and progress have begun a line

void write_note(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Calls nothing that a signal handler may not.
void on_signal(int) {
  const int error = errno;
  exec::request_interrupt();
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  if (g_on_terminal_line) write_note("\n");
  write_note(g_note);
  errno = error;
}

void say_where() {
  if (!exec::this_rank::is_fiber()) return;
  const auto where = exec::CallSite::capture().describe();
  write_note(
      fmt::format("rank {} computes{}{}\n", exec::this_rank::rank(), where.empty() ? "" : " at ", where));
}

// The second time round nothing is left to lose: looking up names may wait for ever for what the rank holds,
// and the process is about to be killed.
void on_time_limit(int) {
  const int error = errno;
  if (exec::interrupt_requested()) say_where();
  exec::request_interrupt();
  errno = error;
}

// A signal that the caller ignores (as a shell script does for what runs in its background) stays ignored.
void take_over(int signal, const struct sigaction& action, struct sigaction& before) {
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptibleScope::InterruptibleScope(std::string_view note) {
  g_note = note;
  g_on_terminal_line = isatty(STDERR_FILENO) != 0;
  exec::clear_interrupt();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  take_over(SIGINT, action, interrupt_before_);
  take_over(SIGTERM, action, terminate_before_);
}

InterruptibleScope::~InterruptibleScope() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
  exec::clear_interrupt();
}

SignalsHeld::SignalsHeld() {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

SignalsHeld::~SignalsHeld() {
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void obey_the_sweep() {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_time_limit;
  action.sa_flags = SA_RESTART;
  sigaction(SIGXCPU, &action, nullptr);
}

void expect_lost_readers() {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Reading from stdout's place works, writing fails, as it does with a closed one.
    const int filled = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (filled >= 0 && filled != fd) close(filled);
  }
}

}  // namespace rehearse::cli
