// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace rehearse::real {

// Waits for threads, but not forever: a thread that waits for a store that does not respond never ends.
class ThreadEnds {
 public:
  // The thread calls this as its last step.
  void note() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  // Joins all `threads` if all of them note their ends within `within`. Otherwise detaches all of them and returns
  // false.
  template <class... Threads>
  bool join(std::chrono::nanoseconds within, Threads&... threads) {
    (threads.request_stop(), ...);
    std::unique_lock lock(mutex_);
    const bool all = changed_.wait_for(lock, within, [this] { return ended_ >= static_cast<int>(sizeof...(Threads)); });
    lock.unlock();
    ((all ? threads.join() : threads.detach()), ...);
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int ended_ = 0;
};

}  // namespace rehearse::real
