// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/rank_memory.h>

namespace rehearse::sim {

// Counts the memory of each rank's tensors against a limit: the bytes that the rank's fibers request from LibTorch's
// CPU allocator, until anybody frees them. An allocation that would exceed the limit throws c10::OutOfMemoryError, as
// on a device, and takes nothing.
//
// A world has at most one meter, and finds it by exec::WorldLocal<MemoryMeter>. Tensors may outlive the meter.
// Construct, use and destroy the meter on the executor's thread; nothing blocks.
class MemoryMeter {
 public:
  // `limit`: the bytes that each rank has; 0: no limit. `call_sites`: record where allocations are made (slow: one
  // stack walk for each).
  MemoryMeter(int ranks, std::uint64_t limit, bool call_sites);
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;
  ~MemoryMeter();

  // Makes the rank's next allocation of at least `bytes` fail. `then` gets the size of that allocation before the
  // allocation throws.
  void fail_next(int rank, std::uint64_t bytes, std::function<void(std::uint64_t size)> then);

  // Call this when the rank restarts. The account of its new incarnation starts at zero, and no account contains the
  // memory that nobody has freed yet.
  void begin_again(int rank);

  // By rank.
  std::vector<RankMemory> uses() const;

  // The counting allocator calls these. take() throws c10::OutOfMemoryError. Its result is the `site` for give_back().
  std::size_t take(int rank, std::uint64_t bytes);
  void give_back(int rank, std::uint64_t bytes, std::size_t site) noexcept;

 private:
  struct Failure {
    std::uint64_t bytes;
    std::function<void(std::uint64_t)> then;
  };
  struct Account {
    std::uint64_t taken = 0, most = 0;
    std::vector<std::uint64_t> by_site, at_most;  // bytes of each place: now, and at the peak
    bool at_most_is_now = false;                  // true: nothing was given back since the peak, so by_site is the peak
    std::optional<Failure> failure;
  };

  std::size_t site_here();

  const std::uint64_t limit_;
  const bool call_sites_;
  std::vector<Account> accounts_;                       // by rank
  std::map<exec::CallSite, std::size_t> site_numbers_;  // only for look-ups; numbered in order of the first allocation
  std::vector<exec::CallSite> sites_;                   // by number
  const exec::WorldLocal<MemoryMeter>::Lent lent_{*this};
};

}  // namespace rehearse::sim
