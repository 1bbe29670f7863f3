// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/signals.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/signal_io.h>
#include <rehearse_internal/exec/watchdog.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

std::string_view g_note;          // changes only while no handler is installed
bool g_on_terminal_line = false;  // stderr is a terminal, where "^C" or progress has begun a line
volatile std::sig_atomic_t g_first_signal = 0;
SecondInterrupt g_second = nullptr;
CrashRecord* g_worker_crash = nullptr;  // the record of a sweep's worker

void write_note(std::string_view text) { exec::write_at_once(STDERR_FILENO, text.data(), text.size()); }

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

void prepare_second() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  action.sa_flags = static_cast<int>(SA_NODEFER | SA_RESETHAND | SA_RESTART);
  if (g_second != nullptr) {
    action.sa_sigaction = g_second;
    action.sa_flags |= SA_SIGINFO;
  }
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// Calls only functions that are safe in a signal handler.
void on_signal(int signal) {
  const int error = errno;
  g_first_signal = signal;
  exec::request_interrupt();
  prepare_second();
  if (g_on_terminal_line) write_note("\n");
  write_note(g_note);
  errno = error;
}

void on_time_limit(int signal) {
  const int error = errno;
  if (exec::interrupt_requested()) note_crash(*g_worker_crash, signal);
  exec::request_interrupt();
  errno = error;
}

// If this process began with the signal ignored, as background jobs of a shell script do, the signal stays ignored.
void take_over(int signal, const struct sigaction& action, struct sigaction& before) {
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptibleScope::InterruptibleScope(std::string_view note) {
  g_note = note;
  g_on_terminal_line = isatty(STDERR_FILENO) != 0;
  g_first_signal = 0;
  exec::clear_interrupt();
  exec::set_interrupt_hint(note == kRunInterrupted ? "Ctrl-C again ends the process at once" : nullptr);
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  take_over(SIGINT, action, interrupt_before_);
  take_over(SIGTERM, action, terminate_before_);
}

InterruptibleScope::~InterruptibleScope() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
  exec::clear_interrupt();
  exec::set_interrupt_hint(nullptr);
}

SignalsHeld::SignalsHeld() {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

SignalsHeld::~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

int first_signal() noexcept { return g_first_signal; }

void end_at_second_interrupt(SecondInterrupt handler) { g_second = handler; }

void leave_signals_to_others() {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) ::signal(signal, SIG_IGN);
}

void obey_the_sweep(CrashRecord& crash) {
  leave_signals_to_others();
  g_worker_crash = &crash;
  handle(SIGXCPU, on_time_limit, SA_RESTART);
}

void expect_lost_readers() {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opens /dev/null in the wrong direction, so that reading stdin or writing stdout fails, as with a closed stream.
    const int filled = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (filled >= 0 && filled != fd) close(filled);
  }
}

}  // namespace rehearse::cli
