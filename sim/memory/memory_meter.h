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
#include <rehearse_internal/job/rank_memory.h>

namespace rehearse::sim {

// What the tensors of each rank take, of so much as each has: the bytes that LibTorch's CPU allocator is asked for in
// the rank's fibers, until they are given back, by whomever. An allocation that would pass the limit throws
// c10::OutOfMemoryError, as devices do, and takes nothing.
//
// One a world; while it lives, LibTorch's CPU allocator is a counting one. Tensors may outlive it. Made, asked and
// destroyed on the executor's thread; nothing blocks.
class MemoryMeter {
 public:
  // `limit`: bytes a rank has; 0: any number. `call_sites`: note where allocations are made (slow: a stack walk each).
  MemoryMeter(int ranks, std::uint64_t limit, bool call_sites);
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;
  ~MemoryMeter();

  // The rank's next allocation of at least so many bytes fails; `then` is told of its size, before it throws.
  void fail_next(int rank, std::uint64_t bytes, std::function<void(std::uint64_t size)> then);

  // The rank's next life has taken nothing yet; what the former one has taken is nobody's from now on.
  void begin_again(int rank);

  // By rank.
  std::vector<RankMemory> uses() const;

  // For the counting allocator. take() throws c10::OutOfMemoryError; what it returns is for give_back().
  std::size_t take(int rank, std::uint64_t bytes);
  void give_back(int rank, std::uint64_t bytes, std::size_t place) noexcept;

 private:
  struct Failure {
    std::uint64_t bytes;
    std::function<void(std::uint64_t)> then;
  };
  struct Account {
    std::uint64_t taken = 0, most = 0;
    std::vector<std::uint64_t> by_place, at_most;
    bool at_most_is_now = false;  // since `most` nothing was given back: by_place tells of it
    std::optional<Failure> failure;
  };

  std::size_t place_here();

  const std::uint64_t limit_;
  const bool call_sites_;
  std::vector<Account> accounts_;                 // by rank
  std::map<exec::CallSite, std::size_t> places_;  // looked up; in order of their first allocation
  std::vector<exec::CallSite> sites_;             // by place
};

}  // namespace rehearse::sim
