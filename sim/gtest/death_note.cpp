// SPDX-License-Identifier: BSD-3-Clause
#include "death_note.h"

#include <charconv>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/signal_io.h>

namespace rehearse {
namespace {

void write(std::string_view text) { exec::write_at_once(STDERR_FILENO, text.data(), text.size()); }

}  // namespace

DeathNote* DeathNote::g_living = nullptr;

DeathNote::DeathNote(const std::string& check, std::uint64_t seed, const std::string& command)
    : outer_(g_living),
      before_rank_("rehearse: a fatal signal on "),
      after_rank_(fmt::format(" ended {}, seed {}; again: {}\n", check, seed, command)) {
  g_living = this;
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

DeathNote::~DeathNote() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
  g_living = outer_;
}

// Calls only functions that are safe in a signal handler.
void DeathNote::on_signal(int signal, siginfo_t* info, void*) {
  DeathNote& note = *g_living;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &note.previous_[i], nullptr);
  write(note.before_rank_);
  if (const int rank = exec::rank_of_thread().rank; rank >= 0) {
    char number[16];
    const auto end = std::to_chars(number, number + sizeof number, rank).ptr;
    write("rank ");
    write({number, static_cast<std::size_t>(end - number)});
  } else {
    write("no rank");
  }
  write(note.after_rank_);
  if (info->si_code <= 0) ::raise(signal);  // another process or thread sent it; a fault would repeat by itself
}

}  // namespace rehearse
