// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <thread>

namespace rehearse::compiler {

// The thread that holds something which only one thread may hold at a time. The same thread may enter it again.
class Holder {
 public:
  bool is_other_thread() const noexcept { return depth_ > 0 && thread_ != std::this_thread::get_id(); }
  void enter() noexcept {
    thread_ = std::this_thread::get_id();
    ++depth_;
  }
  void leave() noexcept { --depth_; }

 private:
  std::thread::id thread_;
  int depth_ = 0;
};

// Outside of a World, several threads may call compiled functions at once. They share a cache for each function. Nobody
// waits while a thread compiles, because that thread runs the user's code, which may itself wait for other threads.
// `mutex` is held only for short steps: to look into a cache, and to read or change the members below.
struct CallingThreads {
  static CallingThreads& get() {
    static CallingThreads threads;
    return threads;
  }

  std::recursive_mutex mutex;
  // Captures change the default generator, which is process-wide. So only one thread compiles at a time.
  Holder compiling;
};

// Enters the holders while it lives, and unlocks `lock` (of CallingThreads::mutex) meanwhile.
class CompilingTurn {
 public:
  // `compiling`: null if this compilation need not be the only one in the process.
  CompilingTurn(std::unique_lock<std::recursive_mutex>& lock, Holder& function, Holder* compiling)
      : lock_(lock), function_(function), compiling_(compiling) {
    function_.enter();
    if (compiling_) compiling_->enter();
    lock_.unlock();
  }
  CompilingTurn(const CompilingTurn&) = delete;
  CompilingTurn& operator=(const CompilingTurn&) = delete;
  ~CompilingTurn() {
    lock_.lock();
    function_.leave();
    if (compiling_) compiling_->leave();
  }

 private:
  std::unique_lock<std::recursive_mutex>& lock_;
  Holder& function_;
  Holder* const compiling_;
};

}  // namespace rehearse::compiler
