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

// The executor's thread, on which a fiber runs, and the real threads that help it to run the fiber's code. All of them
// use variables on the fiber's stack.
class NativeTeam {
 public:
  NativeTeam() noexcept : outer_(std::exchange(t_innermost, this)) {}
  NativeTeam(const NativeTeam&) = delete;
  NativeTeam& operator=(const NativeTeam&) = delete;
  ~NativeTeam() { t_innermost = outer_; }

  // The executor's thread reports the number of threads, including itself.
  void note_size(int threads) noexcept { others_ = threads - 1; }
  // Each of the other threads calls it once, when it will not touch the fiber's variables any more.
  void note_gone() noexcept { gone_.fetch_add(1, std::memory_order_release); }

  // Call it in a fiber that ends inside a team's code. Waits for the other threads of all teams to which the calling
  // thread belongs, but only for a second, because those threads may wait for this one.
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

inline constexpr NativeCode kOpenmpRegion{"an OpenMP parallel region", "region"};

// While it lives, this thread runs code of `fiber` together with real threads (an OpenMP region). Meanwhile this thread
// cannot switch to another fiber, because the OpenMP library keeps the state of the region per thread. Blocking
// functions are then libc's own, except for mutexes that fibers hold (mutex.cpp). Used on the executor's thread and on
// the threads that help it.
class NativeSection : public NativeScope {
 public:
  explicit NativeSection(Fiber& fiber) noexcept : NativeScope(&fiber, kOpenmpRegion) {}

  // Call it in a fiber that ends inside a NativeSection or NativeScope and will not return. Leaves the section and
  // returns the fiber, which is current again. Returns null if this thread has no executor, or is in no section.
  static Fiber* abandon() noexcept {
    if (t_native_fiber == nullptr || RankExecutor::current() == nullptr) return nullptr;
    NativeTeam::outlive_others();
    t_current_fiber = std::exchange(t_native_fiber, nullptr);
    return t_current_fiber;
  }
};

}  // namespace rehearse::exec
