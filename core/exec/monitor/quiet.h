// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#include <sys/types.h>

#include <rehearse_internal/exec/watchdog.h>

namespace rehearse::exec {

// Measures how long a run has done nothing, from observations one second apart. A late observation (the process was
// stopped) counts as one second.
class Quiet {
 public:
  static constexpr int kSamplesMax = 10;

  // Takes the totals so far: switches of the run, and the process's CPU time. Returns true once per standstill.
  bool sample(std::uint64_t switches, std::chrono::nanoseconds cpu) noexcept {
    const bool moved = switches != switches_ || cpu - cpu_ > kIdleCpu;
    switches_ = switches;
    cpu_ = cpu;
    samples_ = moved ? 0 : samples_ + 1;
    return samples_ == kSamplesMax;
  }

  // Excludes CPU time spent on reporting the standstill. `cpu`: the process's total afterwards.
  void discount(std::chrono::nanoseconds cpu) noexcept { cpu_ = cpu; }

 private:
  // At most this much CPU time per second counts as nothing done, because the observations themselves take some.
  static constexpr std::chrono::milliseconds kIdleCpu{20};

  std::uint64_t switches_ = 0;
  std::chrono::nanoseconds cpu_{-1'000'000'000};
  int samples_ = 0;
};

// Registers the calling thread's current run with the watchdog.
class WatchedRun {
 public:
  // `switches`: grows while the run makes progress; must outlive this object.
  explicit WatchedRun(const std::uint64_t& switches);
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;
  ~WatchedRun();

 private:
  const std::uint64_t& switches_;
};

// The time between observations: a second, except in tests.
void set_watchdog_tick(std::chrono::nanoseconds tick) noexcept;

}  // namespace rehearse::exec
