// SPDX-License-Identifier: BSD-3-Clause
// Mutexes of all kinds exclude other ranks, although libc sees one thread.
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Mutex : public Worlds {};
REHEARSE_IN_WORLDS(Mutex);

class KindOfMutex {
 public:
  explicit KindOfMutex(int kind, int protocol = PTHREAD_PRIO_NONE, int robust = PTHREAD_MUTEX_STALLED) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~KindOfMutex() { pthread_mutex_destroy(&mutex); }
  pthread_mutex_t mutex;
};

// Each rank sleeps while it holds the mutex. The sleeps add up if and only if one rank holds it at a time.
void expect_one_at_a_time(World w, pthread_mutex_t& mutex) {
  bool inside = false;
  const auto outcome = w.run([&](int) {
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
      EXPECT_FALSE(std::exchange(inside, true));
      this_rank::sleep_for(1ms);
      inside = false;
      EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(3ms * w.options.ranks));
}

TEST_P(Mutex, EveryKind_LetsInOneRankAtATime) {
  for (int kind :
       {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP}) {
    KindOfMutex plain(kind), robust(kind, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
    expect_one_at_a_time(world(), plain.mutex);
    if (kind == PTHREAD_MUTEX_NORMAL) expect_one_at_a_time(world(), robust.mutex);
  }
  KindOfMutex inheriting(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
  expect_one_at_a_time(world(), inheriting.mutex);
}

TEST_P(Mutex, Recursive_CountsForItsRankAndKeepsOthersOut) {
  auto w = world();
  std::recursive_mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      for (int k = 0; k < 3; ++k) mutex.lock();
      this_rank::sleep_for(2ms);
      EXPECT_TRUE(mutex.try_lock());
      for (int k = 0; k < 3; ++k) {
        mutex.unlock();
        this_rank::sleep_for(1ms);
      }
      mutex.unlock();
      return;
    }
    this_rank::sleep_for(1ms);
    EXPECT_FALSE(mutex.try_lock());
    std::lock_guard lock(mutex);
    EXPECT_EQ(this_rank::now(), at(5ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Mutex, ErrorCheck_KnowsItsRank) {
  auto w = world();
  KindOfMutex checked(PTHREAD_MUTEX_ERRORCHECK);
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(pthread_mutex_lock(&checked.mutex), 0);
      EXPECT_EQ(pthread_mutex_lock(&checked.mutex), EDEADLK);
      EXPECT_EQ(pthread_mutex_trylock(&checked.mutex), EBUSY);
      this_rank::sleep_for(2ms);
      EXPECT_EQ(pthread_mutex_unlock(&checked.mutex), 0);
      EXPECT_EQ(pthread_mutex_unlock(&checked.mutex), EPERM);
      return;
    }
    this_rank::sleep_for(1ms);
    EXPECT_EQ(pthread_mutex_unlock(&checked.mutex), EPERM);
    this_rank::sleep_for(2ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Mutex, TimedLock_GivesUpInVirtualTime) {
  auto w = world();
  std::timed_mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      std::lock_guard lock(mutex);
      this_rank::sleep_for(10s);
      return;
    }
    this_rank::sleep_for(1s);
    EXPECT_FALSE(mutex.try_lock_for(2s));
    EXPECT_EQ(this_rank::now(), at(3s));
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 1s));
    EXPECT_EQ(this_rank::now(), at(4s));
    EXPECT_TRUE(mutex.try_lock_for(20s));
    EXPECT_EQ(this_rank::now(), at(10s));
    mutex.unlock();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Mutex, SpinOnTryLock_LetsOthersRun) {
  auto w = world();
  std::mutex mutex;
  const auto outcome = w.run([&](int) {
    while (!mutex.try_lock()) {
    }
    this_rank::sleep_for(1ms);
    mutex.unlock();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1ms * ranks()));
}

TEST_P(Mutex, LockedTwiceByOneRank_IsADeadlockThatNamesIt) {
  auto w = world();
  std::mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank != 1) this_rank::sleep_for(1ms);
    std::lock_guard first(mutex);
    std::lock_guard second(mutex);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(outcome.end_time, at(1ms));
  auto expected = same_line(0, ranks() - 1, "a mutex held by rank 1");
  expected[1] = "rank 1: a mutex that rank 1 holds already";
  EXPECT_EQ(lines(outcome.blocked), expected);
  for (const auto& entry : outcome.blocked) EXPECT_EQ(entry.waits_for, std::vector<int>{1});
}

TEST_P(Mutex, LockedInOppositeOrder_IsADeadlockWithItsCycle) {
  auto w = world();
  std::mutex a, b;
  const auto outcome = w.run([&](int rank) {
    if (rank > 1) return;
    std::lock_guard first(rank == 0 ? a : b);
    this_rank::sleep_for(1ms);
    std::lock_guard second(rank == 0 ? b : a);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            (std::vector<std::string>{"rank 0: a mutex held by rank 1", "rank 1: a mutex held by rank 0"}));
}

// pthread_mutex_lock() cannot throw. So a rank that waits for a mutex when the world ends gets it when the holder
// unwinds.
TEST_P(Mutex, WorldEndsWhileItIsHeld_WaitersGetItAsHoldersUnwind) {
  auto w = world();
  std::mutex mutex;
  WaitQueue never;
  int got_it = 0, unwound = 0;
  const auto outcome = w.run([&](int rank) {
    struct Unwound {
      int& count;
      ~Unwound() { ++count; }
    } unwound_here{unwound};
    if (rank != ranks() - 1) this_rank::sleep_for(1ms);
    std::lock_guard lock(mutex);
    ++got_it;
    never.wait(FixedObserver("something"));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(got_it, ranks());
  EXPECT_EQ(unwound, ranks());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST_P(Mutex, LeftLockedByAnEarlierWorld_IsReported) {
  std::mutex mutex;
  world().run([&](int rank) {
    if (rank != 0) return;
    mutex.lock();
    mutex.lock();
  });
  const auto outcome = world().run([&](int) { std::lock_guard lock(mutex); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            same_line(0, ranks() - 1, "a mutex held by a rank of an earlier world, which ended without unlocking it"));
  mutex.unlock();
}

// Ranks and threads outside of ranks exclude each other by libc's own means.
TEST_P(Mutex, SharedWithAThread_ReallyBlocks) {
  auto w = world();
  std::mutex mutex;
  std::recursive_mutex recursive;
  long count = 0;
  constexpr int rounds = 2'000;
  std::thread outside([&] {
    for (int k = 0; k < rounds; ++k) {
      std::scoped_lock both(mutex, recursive);
      ++count;
    }
  });
  const auto outcome = w.run([&](int) {
    for (int k = 0; k < 20; ++k) {
      {
        std::scoped_lock both(mutex, recursive);
        ++count;
      }
      this_rank::yield();
    }
  });
  outside.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(count, rounds + 20 * ranks());
}

// The thread unlocks only after the rank has given up.
TEST(MutexOfAThread, TimedLock_GivesUp) {
  std::timed_mutex mutex;
  std::latch is_held(1), may_unlock(1);
  std::thread outside([&] {
    const std::lock_guard lock(mutex);
    is_held.count_down();
    may_unlock.wait();
  });
  is_held.wait();
  World w(2);
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    EXPECT_FALSE(mutex.try_lock_for(20ms));
    EXPECT_GE(this_rank::now(), at(20ms));
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 20ms));
    may_unlock.count_down();
    EXPECT_TRUE(mutex.try_lock_for(1h));
    mutex.unlock();
  });
  outside.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
