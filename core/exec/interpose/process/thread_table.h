// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include <pthread.h>

#include <rehearse/exec/wait_queue.h>

namespace rehearse::exec::interpose {

// A thread that a rank made: a helper fiber of that rank.
struct MadeThread {
  bool finished = false;
  bool detached = false;
  void* result = nullptr;
  std::string name;
  WaitQueue joiners;
};

// The threads that the ranks of one world have made, and have neither joined nor detached.
class ThreadTable {
 public:
  // A handle is no valid address, so that a libc function that gets a handle despite our replacements fails at once
  // instead of reading arbitrary memory.
  static pthread_t handle_of(int rank, std::uint32_t fiber_of_rank) noexcept {
    return (kMark << 48) | (static_cast<pthread_t>(rank) << 28) | fiber_of_rank;
  }
  static bool is_handle(pthread_t thread) noexcept { return thread >> 48 == kMark; }
  static std::uint32_t fiber_of_rank(pthread_t handle) noexcept {
    return static_cast<std::uint32_t>(handle & ((pthread_t{1} << 28) - 1));
  }

  void add(pthread_t handle, std::shared_ptr<MadeThread> thread) { threads_.emplace(handle, std::move(thread)); }
  std::shared_ptr<MadeThread> find(pthread_t handle) const {
    const auto found = threads_.find(handle);
    return found != threads_.end() ? found->second : nullptr;
  }
  void remove(pthread_t handle) { threads_.erase(handle); }

 private:
  static constexpr pthread_t kMark = 0x5245;

  std::unordered_map<pthread_t, std::shared_ptr<MadeThread>> threads_;
};

}  // namespace rehearse::exec::interpose
