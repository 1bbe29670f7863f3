// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#include <sys/types.h>

#include <rehearse_internal/exec/watchdog.h>

namespace rehearse::exec {

// How long a run has done nothing, by looks at it that come a second after each other. A look that comes late (the
// process was stopped) counts as one.
class Quiet {
 public:
  static constexpr int kLooksMax = 10;

  // What has been counted so far: switches of the run, and the process's CPU time. True once in each standstill.
  bool look(std::uint64_t switches, std::chrono::nanoseconds cpu) noexcept {
    const bool moved = switches != switches_ || cpu - cpu_ > kIdleCpu;
    switches_ = switches;
    cpu_ = cpu;
    looks_ = moved ? 0 : looks_ + 1;
    return looks_ == kLooksMax;
  }

  // The process's CPU time after what was done about it.
  void discount(std::chrono::nanoseconds cpu) noexcept { cpu_ = cpu; }

 private:
  // The CPU time that looking takes in a second.
  static constexpr std::chrono::milliseconds kIdleCpu{20};

  std::uint64_t switches_ = 0;
  std::chrono::nanoseconds cpu_{-1'000'000'000};
  int looks_ = 0;
};

// Tells the watchdog of the run that the calling thread has under way.
class WatchedRun {
 public:
  // `switches`: grows while the run goes on; outlives this.
  explicit WatchedRun(const std::uint64_t& switches);
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;
  ~WatchedRun();

 private:
  const std::uint64_t& switches_;
};

// Between looks; a second, but for tests.
void set_watchdog_tick(std::chrono::nanoseconds tick) noexcept;

}  // namespace rehearse::exec
