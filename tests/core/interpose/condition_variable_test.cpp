// SPDX-License-Identifier: BSD-3-Clause
// Condition variables suspend the rank and keep POSIX's promises about the mutex. A lost signal is a deadlock at once.
#include <condition_variable>
#include <mutex>

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class ConditionVariable : public Worlds {};
REHEARSE_IN_WORLDS(ConditionVariable);

TEST_P(ConditionVariable, Broadcast_WakesEveryWaiter) {
  auto w = world();
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  int woken = 0;
  const auto outcome = w.run([&](int rank) {
    std::unique_lock lock(mutex);
    if (rank == 0) {
      lock.unlock();
      this_rank::sleep_for(1s);
      lock.lock();
      ready = true;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [&] { return ready; });
    EXPECT_FALSE(mutex.try_lock());
    ++woken;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1s));
  EXPECT_EQ(woken, ranks() - 1);
}

TEST_P(ConditionVariable, Signal_WakesOneWaiterEach) {
  auto w = world();
  std::mutex mutex;
  std::condition_variable changed;
  int tickets = 0, wake_ups = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1ms);
      for (int k = 1; k < ranks(); ++k) {
        std::lock_guard lock(mutex);
        ++tickets;
        changed.notify_one();
      }
      return;
    }
    std::unique_lock lock(mutex);
    while (tickets == 0) {
      changed.wait(lock);
      ++wake_ups;
    }
    --tickets;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(wake_ups, ranks() - 1);
  EXPECT_EQ(tickets, 0);
}

TEST_P(ConditionVariable, Timeout_ComesInVirtualTimeOnBothClocks) {
  auto w = world();
  std::mutex mutex;
  std::condition_variable never;
  const auto outcome = w.run([&](int rank) {
    std::unique_lock lock(mutex);
    const auto before = this_rank::now();
    EXPECT_EQ(never.wait_for(lock, 2h), std::cv_status::timeout);
    EXPECT_EQ(this_rank::now() - before, 2h);
    EXPECT_EQ(never.wait_until(lock, std::chrono::system_clock::now() + 1ms * (rank + 1)), std::cv_status::timeout);
    EXPECT_EQ(this_rank::now() - before, 2h + 1ms * (rank + 1));
    EXPECT_EQ(never.wait_until(lock, std::chrono::steady_clock::now() - 1h), std::cv_status::timeout);
    EXPECT_EQ(this_rank::now() - before, 2h + 1ms * (rank + 1));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(ConditionVariable, MonotonicAttribute_IsHonoured) {
  auto w = world();
  const auto outcome = w.run([&](int) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_t cond;
    pthread_cond_init(&cond, &attributes);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 7;
    pthread_mutex_lock(&mutex);
    EXPECT_EQ(pthread_cond_timedwait(&cond, &mutex, &until), ETIMEDOUT);
    EXPECT_EQ(this_rank::now(), at(7s));
    until.tv_nsec = 1'000'000'000;
    EXPECT_EQ(pthread_cond_timedwait(&cond, &mutex, &until), EINVAL);
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&cond);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// A deadline at the end of the calendar counts as no deadline. Otherwise the clock would first run to the year 2262.
TEST_P(ConditionVariable, LostSignal_IsADeadlockEvenWithAnEndlessTimeout) {
  auto w = world();
  std::mutex mutex;
  std::condition_variable never;
  int unwound = 0;
  const auto outcome = w.run([&](int rank) {
    try {
      std::unique_lock lock(mutex);
      if (rank % 2 == 0) {
        never.wait(lock);
      } else {
        never.wait_until(lock, std::chrono::steady_clock::time_point::max());
      }
    } catch (const RankAborted&) {
      ++unwound;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(outcome.end_time, kTimeZero);
  EXPECT_EQ(outcome.switches, static_cast<std::uint64_t>(ranks()));
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a condition variable"));
  EXPECT_EQ(unwound, ranks());
}

// By POSIX, code that unwinds from the wait holds the mutex. The ranks unwind one by one, each with the mutex held.
TEST_P(ConditionVariable, WorldEnds_MutexIsHeldWhileUnwinding) {
  auto w = world();
  std::mutex mutex;
  std::condition_variable never;
  int unwound = 0;
  struct Check {
    std::mutex& mutex;
    int& unwound;
    ~Check() {
      EXPECT_FALSE(mutex.try_lock());
      ++unwound;
    }
  };
  const auto outcome = w.run([&](int) {
    std::unique_lock lock(mutex);
    const Check check{mutex, unwound};
    never.wait(lock);
    ADD_FAILURE() << "nobody has signalled";
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(unwound, ranks());
  EXPECT_EQ(outcome.ranks, std::vector<RankEnd>(static_cast<std::size_t>(ranks()), RankEnd::aborted));
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// A timer fires outside of every rank, and may complete a rank's wait.
TEST_P(ConditionVariable, SignalledByATimer_WakesTheRank) {
  struct Notifier final : Timer {
    std::condition_variable& changed;
    explicit Notifier(std::condition_variable& variable) : changed(variable) {}
    void fire() override { changed.notify_all(); }
  };
  auto w = world();
  std::mutex mutex;
  std::condition_variable changed;
  Notifier notifier(changed);
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) RankExecutor::current()->timers().arm(notifier, at(3s));
    std::unique_lock lock(mutex);
    changed.wait(lock);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(3s));
}

// The program destroys the condition variable after a broadcast. Another condition variable takes its address before
// the waiters run.
TEST_P(ConditionVariable, ReusedAddress_IsAnotherVariable) {
  auto w = world();
  std::mutex mutex;
  std::optional<std::condition_variable> variable(std::in_place);
  int woken = 0;
  const auto outcome = w.run([&](int rank) {
    std::unique_lock lock(mutex);
    if (rank != 0) {
      variable->wait(lock);
      ++woken;
      return;
    }
    lock.unlock();
    this_rank::sleep_for(1ms);
    lock.lock();
    variable->notify_all();
    variable.emplace();
    EXPECT_EQ(variable->wait_for(lock, 1s), std::cv_status::timeout);
    EXPECT_EQ(woken, ranks() - 1);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1'001ms));
}

TEST_P(ConditionVariable, OutsideOfAWorld_IsLibcs) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  EXPECT_EQ(never.wait_for(lock, 1us), std::cv_status::timeout);
}

}  // namespace
}  // namespace rehearse::exec::test
