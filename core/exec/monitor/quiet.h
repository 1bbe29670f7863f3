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
  // After so many observations without a switch, a run is worth a word even if it computes.
  static constexpr int kComputingMax = 30;

  // At most this much CPU time per second counts as nothing done, because the observations themselves take some.
  static constexpr std::chrono::milliseconds kIdleCpu{20};

  // Takes the totals so far: switches of the run, and the process's CPU time. `idle`: kIdleCpu for the time between two
  // observations. Returns true once per standstill.
  bool sample(std::uint64_t switches, std::chrono::nanoseconds cpu, std::chrono::nanoseconds idle = kIdleCpu) noexcept {
    unswitched_ = switches != switches_ ? 0 : unswitched_ + 1;
    const bool moved = unswitched_ == 0 || cpu - cpu_ > idle;
    switches_ = switches;
    cpu_ = cpu;
    samples_ = moved ? 0 : samples_ + 1;
    return samples_ == kSamplesMax;
  }

  // How many observations in a row saw no switch, whatever the process computed.
  int unswitched() const noexcept { return unswitched_; }

  // True once per rank that goes on computing: the last observation was the kComputingMax-th without a switch, and
  // sample() has reported no standstill since.
  bool computes_long() const noexcept { return unswitched_ == kComputingMax && samples_ < kSamplesMax; }

  // Excludes CPU time spent on reporting the standstill. `cpu`: the process's total afterwards.
  void discount(std::chrono::nanoseconds cpu) noexcept { cpu_ = cpu; }

 private:
  std::uint64_t switches_ = 0;
  std::chrono::nanoseconds cpu_{-1'000'000'000};
  int samples_ = 0;
  int unswitched_ = 0;
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
