// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/native_scope.h>

#include "fiber.h"

namespace rehearse::exec {

// The threads that run code with a fiber's own one, on its stack's variables.
class NativeTeam {
 public:
  NativeTeam() noexcept : outer_(std::exchange(t_innermost, this)) {}
  NativeTeam(const NativeTeam&) = delete;
  NativeTeam& operator=(const NativeTeam&) = delete;
  ~NativeTeam() { t_innermost = outer_; }

  // Told by the fiber's own thread: how many there are, this one among them.
  void note_size(int threads) noexcept { others_ = threads - 1; }
  // Told by each of the others, once, when it will not touch the fiber's variables any more.
  void note_gone() noexcept { gone_.fetch_add(1, std::memory_order_release); }

  // For a fiber that ends in the middle: waits for the others in the teams that this thread is in. Not forever, as
  // they may wait for this thread.
  static void outlive_others() noexcept {
    constexpr int kNapsMax = 1'000;
    int naps = 0;
    for (const NativeTeam* team = t_innermost; team != nullptr; team = team->outer_) {
      for (; team->gone_.load(std::memory_order_acquire) < team->others_ && naps < kNapsMax; ++naps) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    t_innermost = nullptr;
  }

 private:
  static inline constinit thread_local NativeTeam* t_innermost = nullptr;

  NativeTeam* const outer_;
  int others_ = 0;
  std::atomic<int> gone_{0};
};

inline constexpr NativePlace kOpenmpRegion{"an OpenMP parallel region", "region"};

// While it lives, this thread runs code that real threads share with it on behalf of `fiber` (an OpenMP region): it
// cannot switch to another fiber, since the others' state is in the thread, and blocking functions are libc's own. In
// the fiber's own thread as in those that help it.
class NativeSection : public NativeScope {
 public:
  explicit NativeSection(Fiber& fiber) noexcept : NativeScope(&fiber, kOpenmpRegion) {}

  // For a fiber that ends in the middle of one (or of a NativeScope), and will not come back: the fiber, which is
  // current again. Null where this thread is not the fiber's own, or in none.
  static Fiber* abandon() noexcept {
    if (t_native_fiber == nullptr || RankExecutor::current() == nullptr) return nullptr;
    NativeTeam::outlive_others();
    t_current_fiber = std::exchange(t_native_fiber, nullptr);
    return t_current_fiber;
  }
};

}  // namespace rehearse::exec
