// SPDX-License-Identifier: BSD-3-Clause
// An OpenMP region of a rank has real threads of its own, and the rank goes on after the region.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <omp.h>
#include <unistd.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

extern "C" void __kmpc_fork_call(void* place, int count, void* region, ...);
extern "C" void GOMP_parallel_start(void (*region)(void*), void* data, unsigned threads);
// g++ 12's AddressSanitizer guesses the size of thread-local storage in libraries that are opened at run time (here
// libomp). At exit, LeakSanitizer would crash on that guess, also without Rehearse.
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }

namespace rehearse::exec::test {
namespace {

constexpr int kThreads = 4;

class OpenmpRegion : public Worlds {};
INSTANTIATE_TEST_SUITE_P(Sizes, OpenmpRegion,
                         ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2, 3)), world_name);

TEST_P(OpenmpRegion, EveryKind_RunsWithAllItsThreads) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    for (int round = 0; round < 3; ++round) {
      int threads = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : threads)
      threads += omp_get_num_threads() == kThreads ? 1 : 0;
      EXPECT_EQ(threads, kThreads);
      this_rank::yield();
      long by_static = 0, by_dynamic = 0, by_guided = 0, by_runtime = 0;
#pragma omp parallel for num_threads(kThreads) schedule(static) reduction(+ : by_static)
      for (int k = 0; k < 1'000; ++k) by_static += k * rank;
      this_rank::yield();
#pragma omp parallel for num_threads(kThreads) schedule(dynamic, 7) reduction(+ : by_dynamic)
      for (int k = 0; k < 1'000; ++k) by_dynamic += k * rank;
#pragma omp parallel for num_threads(kThreads) schedule(guided) reduction(+ : by_guided)
      for (int k = 0; k < 1'000; ++k) by_guided += k * rank;
#pragma omp parallel for num_threads(kThreads) schedule(runtime) reduction(+ : by_runtime)
      for (int k = 0; k < 1'000; ++k) by_runtime += k * rank;
      for (const long sum : {by_static, by_dynamic, by_guided, by_runtime}) EXPECT_EQ(sum, 499'500L * rank);
      this_rank::sleep_for(1ms);
      int left = 0, right = 0;
#pragma omp parallel sections num_threads(2)
      {
#pragma omp section
        left = 1;
#pragma omp section
        right = 2;
      }
      EXPECT_EQ(left + right, 3);
    }
    EXPECT_EQ(this_rank::now(), at(3ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// Real threads wait for each other with libc's own functions.
TEST_P(OpenmpRegion, ItsThreads_ShareLocksAndBarriers) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::mutex mutex;
    int count = 0, after_barrier = 0;
#pragma omp parallel num_threads(kThreads)
    {
      for (int k = 0; k < 100; ++k) {
        const std::lock_guard lock(mutex);
        ++count;
      }
#pragma omp barrier
#pragma omp critical
      after_barrier += count;
    }
    EXPECT_EQ(count, 100 * kThreads);
    EXPECT_EQ(after_barrier, 100 * kThreads * kThreads);
    // After the region, the mutex works for ranks again.
    const std::lock_guard lock(mutex);
    this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(OpenmpRegion, ItsThreads_ReadVirtualTime) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rank));
    const auto now = std::chrono::steady_clock::now();
    int same = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : same)
    same += std::chrono::steady_clock::now() == now ? 1 : 0;
    EXPECT_EQ(same, kThreads);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

template <class Body>
std::string text_of_what_it_throws(const Body& body) {
  try {
    body();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST_P(OpenmpRegion, WhatWouldSwitch_IsRefused) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    std::array<std::string, 2> texts;
#pragma omp parallel num_threads(2)
    texts[static_cast<std::size_t>(omp_get_thread_num())] = text_of_what_it_throws([] { this_rank::yield(); });
    for (const auto& text : texts) {
      EXPECT_EQ(text, "this_rank::yield() was called by rank " + std::to_string(rank) +
                          " in an OpenMP parallel region, in which ranks cannot wait for each other; call it outside "
                          "of the region");
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(OpenmpRegion, RecursiveMutexOfItsRank_IsTakenAgain) {
  auto w = world();
  const auto outcome = w.run([](int) {
    std::recursive_mutex mutex;
    mutex.lock();
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
      const std::lock_guard again(mutex);
      EXPECT_TRUE(mutex.try_lock());
      mutex.unlock();
    }
    this_rank::yield();
    mutex.unlock();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// A region in the form that clang compiles: two thread numbers, then the captured variables.
void count_thread(int*, int*, void* threads) { ++*static_cast<std::atomic<int>*>(threads); }

TEST_P(OpenmpRegion, OfLlvmsLibrary_RunsWithItsThreads) {
  void* const library = ::dlopen("libomp.so.5", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) GTEST_SKIP() << "libomp is not installed";
  const auto set_threads = reinterpret_cast<void (*)(int)>(::dlsym(library, "omp_set_num_threads"));
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    set_threads(kThreads);
    for (int round = 0; round < 3; ++round) {
      std::atomic<int> threads{0};
      // The source location, in libomp's format.
      struct {
        std::int32_t numbers[4] = {0, 2, 0, 0};
        const char* text = ";unknown;unknown;0;0;;";
      } place;
      __kmpc_fork_call(&place, 1, reinterpret_cast<void*>(count_thread), static_cast<void*>(&threads));
      EXPECT_EQ(threads, kThreads);
      this_rank::sleep_for(1ms * rank);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// These tests leave libgomp in the middle of a region, so they run in processes of their own.
using OpenmpFailure = ::testing::Test;

[[noreturn]] void exit_saying(bool right, const std::string& told) {
  if (!right) std::fprintf(stderr, "it told: %s\n", told.c_str());
  std::exit(right ? 0 : 1);
}

void throw_in_region(int rank) {
#pragma omp parallel num_threads(2)
  if (rank == 1 && omp_get_thread_num() == 0) throw std::runtime_error("the dataset is empty");
}

TEST_F(OpenmpFailure, ExceptionThatLeavesTheRegion_IsTheRanksFailure) {
  EXPECT_EXIT(
      {
        World w(3);
        const auto outcome = w.run([](int rank) {
          throw_in_region(rank);
          this_rank::sleep_for(1ms);
        });
        const std::string told = w.sink.told.empty() ? "nothing" : w.sink.told.front();
        exit_saying(outcome.ending == Ending::rank_failed && told == "rank 1: the dataset is empty", told);
      },
      ::testing::ExitedWithCode(0), "");
}

// Thread 0 of the region throws. After that, the other threads still read a local variable of the rank.
void throw_before_others_read(std::atomic<int>& read) {
  const std::array<int, 2> in_frame{1, 2};
#pragma omp parallel num_threads(kThreads)
  {
    if (omp_get_thread_num() == 0) throw std::runtime_error("the dataset is empty");
    ::usleep(20'000);
    read += in_frame[1];
  }
}

TEST_F(OpenmpFailure, RankThatFailsInARegion_OutlivesItsOtherThreads) {
  EXPECT_EXIT(
      {
        World w(2);
        std::atomic<int> read{0};
        w.run([&read](int rank) {
          if (rank == 0) throw_before_others_read(read);
        });
        exit_saying(read == 2 * (kThreads - 1), std::to_string(read));
      },
      ::testing::ExitedWithCode(0), "");
}

RunOutcome lock_in_region(World& w, int thread) {
  std::mutex mutex;
  return w.run([&](int rank) {
    if (rank == 0) {
      const std::lock_guard lock(mutex);
      this_rank::sleep_for(2ms);
    } else if (rank == 1) {
      this_rank::sleep_for(1ms);
#pragma omp parallel num_threads(kThreads)
      if (omp_get_thread_num() == thread) const std::lock_guard lock(mutex);
    }
  });
}

constexpr const char* kHeld = "rank 1 waits in an OpenMP parallel region for a mutex held by rank 0";

TEST_F(OpenmpFailure, MutexOfASuspendedRank_IsRefusedWithItsHolder) {
  EXPECT_EXIT(
      {
        World w(3);
        const auto outcome = lock_in_region(w, 0);
        const std::string told = w.sink.told.empty() ? "nothing" : w.sink.told.front();
        exit_saying(outcome.ending == Ending::rank_failed && told.starts_with("rank 1: " + std::string(kHeld)), told);
      },
      ::testing::ExitedWithCode(0), "");
}

// The thread that locks the mutex is not the rank's own, so it cannot throw an exception to the rank. The process ends,
// and says why.
TEST_F(OpenmpFailure, MutexOfASuspendedRankInAnotherThread_IsRefusedToo) {
  EXPECT_EXIT(
      {
        World w(3);
        lock_in_region(w, kThreads - 1);
      },
      ::testing::KilledBySignal(SIGABRT), kHeld);
}

// GCC before 4.9 starts regions by GOMP_parallel_start(). Rehearse does not support such regions.
TEST_F(OpenmpFailure, ThreadsOfAnUnknownKindOfRegion_AreRefusedByName) {
  EXPECT_EXIT(
      {
        World w(2);
        const auto outcome = w.run([](int rank) {
          if (rank == 1) GOMP_parallel_start([](void*) {}, nullptr, 2);
        });
        const std::string told = w.sink.told.empty() ? "nothing" : w.sink.told.front();
        const bool right =
            told.starts_with("rank 1: rank 1 would start threads of libgomp outside of the OpenMP regions");
        exit_saying(outcome.ending == Ending::rank_failed && right, told);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rehearse::exec::test
