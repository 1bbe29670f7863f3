// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/watcher.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>

#include <rehearse_internal/exec/signal_io.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/death/signals.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {
namespace {

// The message to the watching process.
enum class Word : char { died, lives_on };

CrashRecord* g_watched_crash = nullptr;
int g_deaths = -1;
int g_codes = -1;

// Runs in the watching process: waits for the message.
[[noreturn]] void watch(int deaths, int codes, const CrashRecord& crash, const Watcher::Tell& tell) {
  Word word{};
  try {
    const bool said = read_whole(deaths, &word, sizeof word);
    if (said && word == Word::lives_on) _exit(0);
    // Without a message, the process ended in a way that left it no time, so nobody waits for the code.
    int code = tell(crash);
    if (is_internal(crash)) code = kExitInternal;
    if (said) write_whole(codes, &code, sizeof code);
  } catch (const std::exception& error) {
    Console::error(std::string(error.what()) + "\n");
  }
  _exit(0);
}

}  // namespace

Watcher::Watcher(const Tell& tell) {
  std::fflush(nullptr);  // otherwise both processes would print the buffered text
  {
    const SignalsHeld held;
    process_ = fork();
    if (process_ == 0) leave_signals_to_others();
  }
  if (process_ < 0) throw std::system_error(errno, std::generic_category(), "a process that watches the run");
  if (process_ == 0) {
    {
      const Fd theirs = std::move(deaths_.write_end);
    }
    {
      const Fd theirs = std::move(codes_.read_end);
    }
    watch(deaths_.read_end.get(), codes_.write_end.get(), *crash_, tell);
  }
  {
    const Fd theirs = std::move(deaths_.read_end);
  }
  {
    const Fd theirs = std::move(codes_.write_end);
  }
  g_watched_crash = crash_.get();
  g_deaths = deaths_.write_end.get();
  g_codes = codes_.read_end.get();
  scope_.emplace(*crash_, told);
  end_at_second_interrupt(on_second_interrupt);
  tell_early_end(end_early);
}

Watcher::~Watcher() {
  tell_early_end(nullptr);
  end_at_second_interrupt(nullptr);
  scope_.reset();
  {
    const Fd no_death = std::move(deaths_.write_end);
    const Word word = Word::lives_on;
    [[maybe_unused]] const auto written = exec::write_at_once(no_death.get(), &word, sizeof word);
  }
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Async-signal-safe. Does not use poll(): on a rank, Rehearse's own poll() would run.
std::optional<int> Watcher::told() {
  const Word word = Word::died;
  int code = 0;
  if (exec::write_at_once(g_deaths, &word, sizeof word) != 1) return std::nullopt;
  long got = 0;
  while ((got = exec::read_at_once(g_codes, &code, sizeof code)) < 0 && errno == EINTR) {
  }
  return got == static_cast<long>(sizeof code) ? std::optional(code) : std::nullopt;
}

void Watcher::note(const exec::Found& found) {
  CrashRecord& crash = *g_watched_crash;
  crash.rank = found.rank;
  crash.at_ns = found.at.time_since_epoch().count();
  crash.frames = std::min(found.stack.size(), crash.addresses.size());
  std::copy_n(found.stack.begin(), crash.frames, crash.addresses.begin());
  note_places(crash);
  note_call(crash, found.call);
}

void Watcher::end_overdue(const exec::Found& found) {
  note(found);
  g_watched_crash->signal = SIGXCPU;
  end_process(told().value_or(exit_code(Verdict::interrupted)));
}

void Watcher::end_early(const EarlyEnd& end) {
  CrashRecord& crash = *g_watched_crash;
  note(exec::find_thread(end.thread != 0 ? end.thread : getpid()));
  crash.verdict = end.verdict;
  crash.rank = end.rank;
  crash.state = end.state;
  end.doing.copy(crash.doing.data(), crash.doing.size() - 1);
  end.headline.copy(crash.headline.data(), crash.headline.size() - 1);
  end_process(told().value_or(exit_code(end.verdict)));
}

void Watcher::on_second_interrupt(int signal, siginfo_t*, void* context) {
  note_crash(*g_watched_crash, signal);
  note_call(*g_watched_crash, exec::interrupted_call(context));
  if (const auto code = told()) end_process(*code);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace rehearse::cli
