// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace rehearse::exec::interpose {

// The state that libc keeps for the whole process, for functions that take no state as an argument. Starts as in a new
// process.
struct ProcessState {
  ProcessState(int rank, int ranks);
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  random_data random{};  // also for rand(); points into random_table unless the program set another table
  std::array<char, 128> random_table{};
  drand48_data drand48{};
  char* strtok_rest = nullptr;
  tm broken_down_time{};             // localtime() and gmtime() share it
  std::array<char, 64> time_text{};  // asctime() and ctime() share it
  std::array<char, 16> rank_text{}, ranks_text{};
};

// The states of the ranks of one world, each made at its rank's first use. If a rank has real threads (OpenMP), they
// may use the rank's state at the same time, like threads of a process.
class ProcessStates {
 public:
  // Calls `use` with the rank's state, under a lock.
  template <class Use>
  auto with(int rank, int ranks, const Use& use) {
    const std::lock_guard lock(mutex_);
    auto& state = states_[rank];
    if (state == nullptr) state = std::make_unique<ProcessState>(rank, ranks);
    return use(*state);
  }

  // Gives the rank a fresh state. The old one stays allocated, because pointers to it may exist.
  void renew(int rank) {
    const std::lock_guard lock(mutex_);
    auto& state = states_[rank];
    if (state != nullptr) former_.push_back(std::move(state));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::unique_ptr<ProcessState>> states_;
  std::vector<std::unique_ptr<ProcessState>> former_;
};

}  // namespace rehearse::exec::interpose
