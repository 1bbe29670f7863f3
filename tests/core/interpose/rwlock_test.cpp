// SPDX-License-Identifier: BSD-3-Clause
// Reader-writer locks: readers together, writers alone, in virtual time.
#include <latch>
#include <shared_mutex>
#include <thread>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Rwlock : public Worlds {};
REHEARSE_IN_WORLDS(Rwlock);

TEST_P(Rwlock, ReadersShare_WritersDoNot) {
  auto w = world();
  std::shared_mutex mutex;
  const auto outcome = w.run([&](int rank) {
    {
      std::shared_lock read(mutex);
      this_rank::sleep_for(1ms);
    }
    EXPECT_EQ(this_rank::now(), at(1ms));
    this_rank::sleep_for(1ms);
    if (rank % 2 == 0) return;
    std::lock_guard write(mutex);
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(2ms + 1ms * (ranks() / 2)));
}

TEST_P(Rwlock, Writer_KeepsReadersOutUntilItUnlocks) {
  auto w = world();
  std::shared_mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      std::lock_guard write(mutex);
      this_rank::sleep_for(5ms);
      return;
    }
    this_rank::sleep_for(1ms);
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock());
    std::shared_lock read(mutex);
    EXPECT_EQ(this_rank::now(), at(5ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Rwlock, TimedLocks_GiveUpInVirtualTime) {
  auto w = world();
  std::shared_timed_mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      std::lock_guard write(mutex);
      this_rank::sleep_for(10s);
      return;
    }
    this_rank::sleep_for(1s);
    EXPECT_FALSE(mutex.try_lock_shared_for(1s));
    EXPECT_EQ(this_rank::now(), at(2s));
    EXPECT_FALSE(mutex.try_lock_for(1s));
    EXPECT_EQ(this_rank::now(), at(3s));
    EXPECT_TRUE(mutex.try_lock_shared_for(1h));
    EXPECT_EQ(this_rank::now(), at(10s));
    mutex.unlock_shared();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Rwlock, Deadlock_NamesTheWriterOrCountsTheReaders) {
  auto w = world();
  std::shared_mutex a, b;
  const auto outcome = w.run([&](int rank) {
    if (rank > 1) return;
    if (rank == 0) {
      a.lock();
    } else {
      b.lock_shared();
    }
    this_rank::sleep_for(1ms);
    if (rank == 0) {
      b.lock();
    } else {
      a.lock_shared();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), (std::vector<std::string>{"rank 0: a reader-writer lock held by 1 reader",
                                                              "rank 1: a reader-writer lock held by rank 0"}));
}

TEST_P(Rwlock, WriterThatLocksAgain_IsReported) {
  auto w = world();
  std::shared_mutex mutex;
  int told = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    std::lock_guard write(mutex);
    EXPECT_THROW(mutex.lock(), std::system_error);
    ++told;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(told, 1);
}

TEST_P(Rwlock, SharedWithAThread_ReallyBlocks) {
  auto w = world();
  std::shared_mutex mutex;
  long count = 0;
  constexpr int rounds = 2'000;
  std::thread outside([&] {
    for (int k = 0; k < rounds; ++k) {
      std::lock_guard write(mutex);
      ++count;
    }
  });
  w.run([&](int) {
    for (int k = 0; k < 20; ++k) {
      {
        std::lock_guard write(mutex);
        ++count;
      }
      {
        std::shared_lock read(mutex);
        this_rank::yield();
      }
    }
  });
  outside.join();
  EXPECT_EQ(count, rounds + 20 * ranks());
}

// The thread unlocks only after the rank has given up.
TEST(RwlockOfAThread, TimedLocks_GiveUp) {
  std::shared_timed_mutex mutex;
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
    EXPECT_FALSE(mutex.try_lock_shared_for(20ms));
    EXPECT_GE(this_rank::now(), at(40ms));
    may_unlock.count_down();
    EXPECT_TRUE(mutex.try_lock_for(1h));
    mutex.unlock();
  });
  outside.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
