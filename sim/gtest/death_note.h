// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <signal.h>

namespace rehearse {

// A signal that ends the process (a fault, abort()) prevents the report. While a DeathNote exists, such a signal writes
// one line to stderr: which check, seed and rank were running, and how to run the check again. Then the signal takes
// its usual effect.
//
// If several notes exist, the newest one counts.
class DeathNote {
 public:
  // `command` runs the check again: "REHEARSE_SEED=0x1a ./my_test --gtest_filter=Suite.Test".
  DeathNote(const std::string& check, std::uint64_t seed, const std::string& command);
  DeathNote(const DeathNote&) = delete;
  DeathNote& operator=(const DeathNote&) = delete;
  ~DeathNote();

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL};
  static void on_signal(int signal, siginfo_t* info, void* context);

  static DeathNote* g_living;
  DeathNote* const outer_;
  std::string before_rank_, after_rank_;  // the parts of the line
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace rehearse
