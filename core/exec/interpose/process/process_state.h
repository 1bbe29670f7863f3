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

// What libc keeps for a process behind functions that have no argument for it, as a new process finds it.
struct ProcessState {
  ProcessState(int rank, int ranks);
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  random_data random{};  // rand() too; points into random_table unless the program gave it another
  std::array<char, 128> random_table{};
  drand48_data drand48{};
  char* strtok_rest = nullptr;
  tm broken_down_time{};             // localtime() and gmtime() share one
  std::array<char, 64> time_text{};  // asctime() and ctime() share one
  std::array<char, 16> rank_text{}, ranks_text{};
};

// Those of the ranks of one world, each made when its rank first asks. Where a rank's threads are real (OpenMP), they
// may ask at once, as threads of a process may.
class ProcessStates {
 public:
  // Calls `use` with the rank's, alone.
  template <class Use>
  auto with(int rank, int ranks, const Use& use) {
    const std::lock_guard lock(mutex_);
    auto& state = states_[rank];
    if (state == nullptr) state = std::make_unique<ProcessState>(rank, ranks);
    return use(*state);
  }

  // The rank's next one is as a new process finds it. What it had may still be pointed at, and stays.
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
