// SPDX-License-Identifier: BSD-3-Clause
// POSIX semaphores, and the C++20 types built on futexes: latches, barriers, semaphores, atomic waits.
#include <barrier>
#include <latch>
#include <semaphore>

#include <semaphore.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Semaphore : public Worlds {};
REHEARSE_IN_WORLDS(Semaphore);

struct PosixSemaphore {
  explicit PosixSemaphore(unsigned count) { sem_init(&semaphore, 0, count); }
  ~PosixSemaphore() { sem_destroy(&semaphore); }
  sem_t semaphore;
};

TEST_P(Semaphore, Posix_LetsInAsManyAsItCounts) {
  auto w = world();
  PosixSemaphore two(2);
  int inside = 0;
  const auto outcome = w.run([&](int) {
    EXPECT_EQ(sem_wait(&two.semaphore), 0);
    EXPECT_LE(++inside, 2);
    this_rank::sleep_for(1ms);
    --inside;
    EXPECT_EQ(sem_post(&two.semaphore), 0);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1ms * ((ranks() + 1) / 2)));
}

TEST_P(Semaphore, Posix_TimedAndTriedWaits) {
  auto w = world();
  PosixSemaphore none(0);
  const auto outcome = w.run([&](int) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3;
    EXPECT_EQ(sem_trywait(&none.semaphore), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(sem_timedwait(&none.semaphore, &until), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(this_rank::now(), at(3s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Semaphore, Posix_NeverPosted_IsADeadlock) {
  auto w = world();
  PosixSemaphore none(0);
  const auto outcome = w.run([&](int) { sem_wait(&none.semaphore); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a semaphore"));
}

TEST_P(Semaphore, CountingSemaphore_Works) {
  auto w = world();
  std::counting_semaphore<> semaphore(0);
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return semaphore.acquire();
    this_rank::sleep_for(1s);
    semaphore.release(ranks() - 1);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(1s));
}

TEST_P(Semaphore, Latch_Works) {
  auto w = world();
  std::latch latch(ranks());
  const auto outcome = w.run([&](int rank) {
    this_rank::sleep_for(1ms * rank);
    latch.arrive_and_wait();
    EXPECT_EQ(this_rank::now(), at(1ms * (ranks() - 1)));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Semaphore, Barrier_KeepsPhasesApart) {
  auto w = world();
  std::barrier barrier(ranks());
  const auto outcome = w.run([&](int rank) {
    for (int phase = 1; phase <= 3; ++phase) {
      this_rank::sleep_for(1ms * rank);
      barrier.arrive_and_wait();
      EXPECT_EQ(this_rank::now(), at(1ms * phase * (ranks() - 1)));
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Semaphore, AtomicWait_NeverNotified_IsADeadlock) {
  auto w = world();
  std::atomic<int> value = 0;
  const auto outcome = w.run([&](int) { value.wait(0); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a future, latch or atomic variable (futex)"));
}

}  // namespace
}  // namespace rehearse::exec::test
