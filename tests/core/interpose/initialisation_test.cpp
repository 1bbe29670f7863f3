// SPDX-License-Identifier: BSD-3-Clause
// std::call_once and function-local statics whose initialiser suspends: one rank initialises, the others wait for it.
#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Initialisation : public Worlds {};
REHEARSE_IN_WORLDS(Initialisation);

TEST_P(Initialisation, CallOnce_RunsOnceAndOthersWait) {
  auto w = world();
  std::once_flag once;
  int ran = 0;
  const auto outcome = w.run([&](int) {
    std::call_once(once, [&] {
      this_rank::sleep_for(1s);
      ++ran;
    });
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(this_rank::now(), at(1s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Initialisation, CallOnceThatThrows_IsTriedByTheNext) {
  auto w = world();
  std::once_flag once;
  int tries = 0, failed = 0;
  const auto outcome = w.run([&](int) {
    try {
      std::call_once(once, [&] {
        this_rank::sleep_for(1ms);
        if (++tries < 2) throw std::runtime_error("not yet");
      });
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(outcome.end_time, at(2ms));
}

// std::call_once passes its routine through thread-local variables. If two calls overlap, each must run its own
// routine.
TEST_P(Initialisation, CallOncesSideBySide_RunTheirOwnRoutines) {
  auto w = world();
  std::vector<std::once_flag> flags(static_cast<std::size_t>(ranks()));
  std::vector<int> ran_for(static_cast<std::size_t>(ranks()), -1);
  w.run([&](int rank) {
    const auto mine = static_cast<std::size_t>(rank);
    std::once_flag inner;
    std::call_once(flags[mine], [&] {
      this_rank::yield();
      std::call_once(inner, [&] { this_rank::yield(); });
      ran_for[mine] = rank;
    });
  });
  for (int rank = 0; rank < ranks(); ++rank) EXPECT_EQ(ran_for[static_cast<std::size_t>(rank)], rank);
}

TEST_P(Initialisation, OnceByAThread_IsSeenByRanksAndBack) {
  auto w = world();
  std::once_flag by_thread, by_rank;
  int ran = 0;
  std::thread outside([&] { std::call_once(by_thread, [&] { std::this_thread::sleep_for(1ms); }); });
  w.run([&](int) {
    std::call_once(by_thread, [] {});
    std::call_once(by_rank, [&] { ++ran; });
  });
  outside.join();
  std::call_once(by_rank, [&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

// In a forked process, libc takes the mark of another process for a routine that the fork has interrupted.
TEST(OnceDeathTest, InAForkedProcess_AThreadWaitsForTheRank) {
  EXPECT_EXIT(
      {
        std::once_flag once;
        std::latch begun(1);
        std::atomic<int> ran{0};
        std::thread outside([&] {
          begun.wait();
          std::call_once(once, [&] { ++ran; });
        });
        World(1).run([&](int) {
          std::call_once(once, [&] {
            ++ran;
            const NativeScope real_time;
            begun.count_down();
            std::this_thread::sleep_for(100ms);
          });
        });
        outside.join();
        ::_exit(ran);
      },
      ::testing::ExitedWithCode(1), "");
}

// Each world of a test needs a static of its own, because a process initialises a static only once.
template <int ranks_count, int seed>
int slow_static(int& initialised) {
  static const int value = [&] {
    this_rank::sleep_for(1s);
    return ++initialised;
  }();
  return value;
}

template <int ranks_count, int seed>
void expect_static_initialised_once() {
  World w(ranks_count, seed);
  int initialised = 0;
  const auto outcome = w.run([&](int) {
    EXPECT_EQ((slow_static<ranks_count, seed>(initialised)), 1);
    EXPECT_EQ(this_rank::now(), at(1s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(initialised, 1);
}

template <int seed>
void expect_static_initialised_once_in_worlds() {
  expect_static_initialised_once<2, seed>();
  expect_static_initialised_once<3, seed>();
  expect_static_initialised_once<8, seed>();
  expect_static_initialised_once<64, seed>();
  expect_static_initialised_once<256, seed>();
}

TEST(StaticLocal, SlowInitialiser_RunsOnceAndOthersWait) {
  expect_static_initialised_once_in_worlds<1>();
  expect_static_initialised_once_in_worlds<2>();
  expect_static_initialised_once_in_worlds<3>();
}

TEST(StaticLocal, InitialiserThatThrows_IsTriedByTheNext) {
  World w(8);
  int tries = 0, failed = 0;
  const auto outcome = w.run([&](int) {
    try {
      static const int value = [&] {
        this_rank::sleep_for(1ms);
        if (++tries < 3) throw std::runtime_error("not yet");
        return tries;
      }();
      EXPECT_EQ(value, 3);
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(failed, 2);
}

// The world ends within an initialiser, and the next world initialises again.
TEST(StaticLocal, InitialiserThatNeverEnds_IsADeadlockThatNamesItsRank) {
  WaitQueue never;
  bool hang = true;
  const auto use = [&] {
    static const int value = [&] {
      if (hang) never.wait(FixedObserver("something in an initialiser"));
      return 7;
    }();
    return value;
  };
  const auto outcome = World(3).run([&](int rank) {
    if (rank != 1) this_rank::sleep_for(1ms);
    use();
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  const std::string waits = "the end of the initialisation of a static variable that rank 1 has begun";
  EXPECT_EQ(lines(outcome.blocked),
            (std::vector<std::string>{"rank 0: " + waits, "rank 1: something in an initialiser", "rank 2: " + waits}));
  EXPECT_EQ(outcome.blocked[0].waits_for, std::vector<int>{1});
  hang = false;
  EXPECT_EQ(World(3).run([&](int) { EXPECT_EQ(use(), 7); }).ending, Ending::all_returned);
}

int comes_back(int depth) {
  static const int value = depth > 3 ? 1 : comes_back(depth + 1);
  return value;
}

TEST(StaticLocal, InitialiserThatComesBack_IsTheFailureOfItsRank) {
  World w(2);
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) comes_back(0);
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(w.sink.told,
            std::vector<std::string>{"rank 1: the initialiser of a static variable came back to the same variable"});
}

TEST(StaticLocal, InitialisedByAThread_IsSeenByRanks) {
  std::atomic<int> initialised = 0;
  const auto use = [&] {
    static const int value = [&] {
      std::this_thread::sleep_for(1ms);
      return ++initialised;
    }();
    return value;
  };
  std::thread outside([&] { EXPECT_EQ(use(), 1); });
  const auto outcome = World(8).run([&](int) { EXPECT_EQ(use(), 1); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  outside.join();
}

}  // namespace
}  // namespace rehearse::exec::test
