// SPDX-License-Identifier: BSD-3-Clause
// A thousand worlds, one after another, need the memory of one. Threads that have ended give back their stacks.
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <rehearse_internal/exec/crash.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "exec/monitor/debugger.h"

#include "core/exec/process_memory.h"
#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

// Runs a world that uses threads, locks, condition variables and posted work, and that has one of four endings.
void run_world(std::uint64_t seed) {
  World w(8, seed);
  std::mutex mutex, contended;
  std::recursive_mutex recursive;
  std::shared_mutex shared;
  std::condition_variable changed;
  std::once_flag once;
  int arrived = 0;
  const auto outcome = w.run([&](int rank) {
    std::thread([&] { this_rank::sleep_for(1ms); }).join();
    std::call_once(once, [] { this_rank::yield(); });
    EXPECT_EQ(std::async(std::launch::async, [rank] { return rank; }).get(), rank);
    {
      std::scoped_lock all(contended, recursive);
      std::lock_guard again(recursive);
      this_rank::yield();
    }
    {
      std::shared_lock read(shared);
      this_rank::yield();
    }
    RankExecutor::current()->post((rank + 1) % 8, [] { this_rank::yield(); });
    std::unique_lock lock(mutex);
    if (++arrived == 8) changed.notify_all();
    changed.wait_for(lock, 1h, [&] { return arrived == 8; });
    if (seed % 4 == 1 && rank == 3) throw std::runtime_error("boom");
    if (seed % 4 == 2) changed.wait(lock);
    if (seed % 4 == 3) {
      lock.unlock();
      for (;;) this_rank::poll();
    }
  });
  const Ending endings[] = {Ending::all_returned, Ending::rank_failed, Ending::deadlock, Ending::livelock};
  EXPECT_EQ(outcome.ending, endings[seed % 4]);
}

TEST(ManyWorlds, AThousand_DoNotGrow) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) run_world(seed);
  const std::size_t used = allocated_bytes();
  const std::size_t resident = resident_bytes();
  ASSERT_GT(used, 0u);
  for (std::uint64_t seed = 100; seed < 1'100; ++seed) run_world(seed);
  // The limit is not 0, because malloc counts its reserve as used. If each world lost one object of the smallest size,
  // the limit would be exceeded.
  EXPECT_LT(allocated_bytes(), used + 16'000);
  if (kFreedMemoryIsReused) {
    // The limit allows fragmentation, but no growth: less than one touched page per world.
    EXPECT_LT(resident_bytes(), resident + (std::size_t{1} << 20));
  }
}

TEST(ManyWorlds, ThreadsThatHaveEnded_GiveTheirStacksBack) {
  constexpr std::size_t kThreads = 16;
  const std::size_t before = memory_maps();
  World w(1, 1);
  w.options.stack_bytes = std::size_t{192} << 10;  // other worlds of this thread have left stacks of the usual size
  const auto outcome = w.run([](int) {
    for (int round = 0; round < 100; ++round) {
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([] {});
      for (std::thread& thread : threads) thread.join();
      this_rank::sleep_for(1ms);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_LT(memory_maps(), before + 8 * kThreads);
}

// The stack of a crashed rank stays until its world is gone: others may use objects there. Then nothing may use it.
void crash_a_rank(std::uint64_t seed) {
  World w(4, seed);
  w.options.stack_bytes = std::size_t{192} << 10;  // see above
  std::mutex mutex;
  const int* on_the_stack = nullptr;
  const auto outcome = w.run([&](int rank) {
    const int number = rank;
    if (rank != 1) {
      this_rank::sleep_for(1ms);
      EXPECT_EQ(*on_the_stack, 1);
      return;
    }
    on_the_stack = &number;
    std::thread helper([&] { this_rank::sleep_for(1h); });
    const std::lock_guard lock(mutex);
    if (seed % 3 == 0) crash_rank(*RankExecutor::current(), 1);
    if (seed % 3 == 1) RankExecutor::current()->post(2, [] { crash_rank(*RankExecutor::current(), 1); });
    this_rank::yield();
    if (seed % 3 == 2) RankExecutor::current()->post(2, [] { crash_rank(*RankExecutor::current(), 1); });
    mutex.lock();
  });
  EXPECT_EQ(outcome.ranks[1], RankEnd::aborted);
}

TEST(ManyWorlds, CrashedRanks_GiveTheirStacksBack) {
  constexpr std::size_t kMapsOfPool = 2 * 16;
  for (std::uint64_t seed = 0; seed < 20; ++seed) crash_a_rank(seed);
  const std::size_t before = memory_maps();
  for (std::uint64_t seed = 20; seed < 420; ++seed) crash_a_rank(seed);
  if (kFreedMemoryIsReused) {
    EXPECT_LT(memory_maps(), before + kMapsOfPool);
  }
}

// The debugger's table shows the world that began last until that world ends, whichever worlds end before it.
TEST(ManyWorlds, DebuggerTable_OutlivesAnEarlierWorld) {
  std::latch first_runs(1), second_runs(1);
  std::thread first([&] {
    World(1).run([&](int) {
      const NativeScope waits_for_threads;
      first_runs.count_down();
      second_runs.wait();
    });
  });
  first_runs.wait();
  World(1).run([&](int) {
    const auto* const fibers = rehearse_debugger_table.fibers;
    const NativeScope waits_for_threads;
    second_runs.count_down();
    first.join();
    EXPECT_NE(fibers, nullptr);
    EXPECT_EQ(rehearse_debugger_table.fibers, fibers);
  });
  EXPECT_EQ(rehearse_debugger_table.fibers, nullptr);
}

}  // namespace
}  // namespace rehearse::exec::test
