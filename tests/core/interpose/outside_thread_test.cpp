// SPDX-License-Identifier: BSD-3-Clause
// Contract: in real time, a signal of a real thread wakes the ranks that wait for it, and no signal is lost, whenever
// it comes. In virtual time, a wait that only a real thread could end is a deadlock.
#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <thread>

#include <semaphore.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/machine_time_world.h"
#include "exec/interpose/outside_wait.h"
#include "exec/time/doorbell.h"

namespace rehearse::exec::test {
namespace {

constexpr int kTurns = 2'000;

// A real thread and the rank take turns many times, in any interleaving. Both callables get the number of a player: 0
// is the rank, and 1 is the thread.
template <class Wait, class Pass>
void play(const Wait& wait_for, const Pass& pass_to) {
  std::thread thread([&] {
    for (int k = 0; k < kTurns; ++k) {
      wait_for(1);
      pass_to(0);
    }
  });
  MachineTimeWorld w(1);
  int turns = 0;
  const auto outcome = w.run([&](RankExecutor&, int) {
    for (; turns < kTurns; ++turns) {
      pass_to(1);
      wait_for(0);
    }
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(turns, kTurns);
}

TEST(OutsideThread, ConditionVariable_WakesTheRank) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  play(
      [&](int mine) {
        std::unique_lock lock(mutex);
        while (turn != mine) changed.wait(lock);
      },
      [&](int whose) {
        {
          const std::lock_guard lock(mutex);
          turn = whose;
        }
        changed.notify_one();
      });
}

TEST(OutsideThread, BroadcastUnderTheLock_WakesTheRank) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  play(
      [&](int mine) {
        std::unique_lock lock(mutex);
        while (turn != mine) changed.wait_for(lock, 1h);
      },
      [&](int whose) {
        const std::lock_guard lock(mutex);
        turn = whose;
        changed.notify_all();
      });
}

TEST(OutsideThread, Semaphore_WakesTheRank) {
  sem_t of[2];
  ASSERT_EQ(::sem_init(&of[0], 0, 0), 0);
  ASSERT_EQ(::sem_init(&of[1], 0, 0), 0);
  play(
      [&](int mine) {
        while (::sem_wait(&of[mine]) != 0) continue;
      },
      [&](int whose) { ::sem_post(&of[whose]); });
  for (auto& semaphore : of) EXPECT_EQ(::sem_destroy(&semaphore), 0);
}

TEST(OutsideThread, AtomicVariable_WakesTheRank) {
  std::atomic<int> turn{0};
  play(
      [&](int mine) {
        for (int seen = turn; seen != mine; seen = turn) turn.wait(seen);
      },
      [&](int whose) {
        turn = whose;
        turn.notify_all();
      });
}

TEST(OutsideThread, Promise_WakesTheRankThatWaitsForIt) {
  std::promise<int> question;
  std::promise<int> answer;
  std::thread thread([&] { answer.set_value(question.get_future().get() + 1); });
  MachineTimeWorld w(2);
  int got = 0;
  const auto outcome = w.run([&](RankExecutor&, int rank) {
    if (rank == 0) got = answer.get_future().get();
    if (rank == 1) question.set_value(41);
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(got, 42);
}

TEST(OutsideThread, AllRanksOnOneObject_AreWokenTogether) {
  std::mutex mutex;
  std::condition_variable changed;
  std::latch all_wait(1);
  bool open = false;
  int waiting = 0;
  std::thread thread([&] {
    all_wait.wait();
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  });
  MachineTimeWorld w(8);
  const auto outcome = w.run([&](RankExecutor&, int) {
    std::unique_lock lock(mutex);
    if (++waiting == 8) all_wait.count_down();
    while (!open) changed.wait(lock);
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// Rank 1 can always run, so the executor is never idle. It sees the signal at its next poll of the idle policy.
TEST(OutsideThread, Signal_IsSeenBesideARankThatYields) {
  std::mutex mutex;
  std::condition_variable changed;
  std::latch waits(1);
  bool open = false, passed = false;
  std::thread thread([&] {
    waits.wait();
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  });
  MachineTimeWorld w(2);
  w.world.options.switches_between_polls = 16;
  const auto outcome = w.run([&](RankExecutor&, int rank) {
    if (rank == 0) {
      std::unique_lock lock(mutex);
      waits.count_down();
      while (!open) changed.wait(lock);
      passed = true;
    }
    while (!passed) this_rank::yield();
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(passed);
}

// A world's thread sleeps on one futex, the doorbell, however many objects its ranks wait for. A signal for any of
// these objects must wake the thread.
TEST(OutsideThread, SignalThatAnyRankMayWaitFor_WakesTheSleeper) {
  interpose::WaitTable table;
  interpose::OutsideWaits waits;
  std::array<int, 2048> objects{};  // together they use every pair of counters in outside_wait.cpp
  for (const int& object : objects) waits.begin(&object, table);
  std::atomic<bool> woken{false};
  std::thread sleeper([&] {
    hear_doorbell();
    machine_sleep(1h);
    woken = true;
  });
  while (!woken) interpose::signal_outside(&objects[0]);
  sleeper.join();
}

// If a wait in virtual time waited for a thread, the run would depend on when the thread's signal comes.
TEST(OutsideThread, InVirtualTime_IsNotWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  World w(1);
  const auto outcome = w.run([&](int) {
    std::unique_lock lock(mutex);
    for (;;) changed.wait(lock);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
}

}  // namespace
}  // namespace rehearse::exec::test
