// SPDX-License-Identifier: BSD-3-Clause
// A fiber may suspend at any point at which a thread may be preempted, because each fiber has its own copy of the state
// that the C++ run-time keeps per thread.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Suspension : public Worlds {};
REHEARSE_IN_WORLDS(Suspension);

std::string text_of_current() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_P(Suspension, InACatchBlock_KeepsItsOwnException) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    const auto mine = "rank " + std::to_string(rank);
    try {
      try {
        throw std::runtime_error(mine);
      } catch (...) {
        for (int k = 0; k <= rank % 5; ++k) this_rank::yield();
        try {
          throw std::logic_error("inner " + mine);
        } catch (const std::logic_error& inner) {
          this_rank::yield();
          EXPECT_EQ(inner.what(), "inner " + mine);
        }
        EXPECT_EQ(text_of_current(), mine);
        throw;
      }
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), mine);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

struct YieldsWhileUnwinding {
  int times;
  ~YieldsWhileUnwinding() {
    for (int k = 0; k < times; ++k) {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      this_rank::yield();
    }
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }
};

TEST_P(Suspension, InADestructorDuringUnwinding_KeepsItsOwnException) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    try {
      YieldsWhileUnwinding outer{rank % 3};
      YieldsWhileUnwinding inner{rank % 4 + 1};
      throw std::runtime_error(std::to_string(rank));
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(rank));
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(Suspension, Errno_IsEachFibersOwn) {
  auto w = world();
  int compared = 0;
  const auto outcome = w.run([&](int rank) {
    EXPECT_EQ(errno, 0);
    errno = rank + 1;
    for (int k = 0; k < 3; ++k) {
      this_rank::yield();
      EXPECT_EQ(errno, rank + 1);
    }
    ++compared;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(compared, ranks());
}

// If a destructor runs because of an exception, no second exception may leave it. So rank 0 stays where it is, and the
// other ranks unwind.
TEST_P(Suspension, WorldEndsInADestructor_RankIsLeftBehindAndOthersUnwind) {
  auto w = world();
  WaitQueue never;
  int unwound = 0;
  struct WaitsWhileUnwinding {
    WaitQueue& queue;
    ~WaitsWhileUnwinding() { queue.wait(FixedObserver("a destructor's wait")); }
  };
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      WaitsWhileUnwinding waits{never};
      throw std::runtime_error("first");
    }
    try {
      never.wait(FixedObserver("another wait"));
    } catch (const RankAborted&) {
      ++unwound;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(unwound, ranks() - 1);
  auto expected = same_line(1, ranks() - 1, "another wait");
  expected.insert(expected.begin(), "rank 0: a destructor's wait");
  EXPECT_EQ(lines(outcome.blocked), expected);
  EXPECT_EQ(outcome.ranks[0], RankEnd::aborted);
  EXPECT_TRUE(outcome.failures.empty());
}

TEST_P(Suspension, WaitForTheEnd_IsUnwoundByIt) {
  auto w = world();
  int unwound = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1ms);  // all others wait by then
      throw std::runtime_error("enough");
    }
    try {
      this_rank::wait_for_the_end(FixedObserver("what comes after rank 0"));
    } catch (const RankAborted&) {
      ++unwound;
      throw;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(unwound, ranks() - 1);
  EXPECT_EQ(lines(outcome.blocked), same_line(1, ranks() - 1, "what comes after rank 0"));
}

TEST_P(Suspension, WaitForAnEndThatNeverComes_IsADeadlock) {
  auto w = world();
  const auto outcome = w.run([](int) { this_rank::wait_for_the_end(FixedObserver("an end")); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "an end"));
}

void waits_and_must_not_throw(WaitQueue& queue) noexcept { queue.wait(FixedObserver("a noexcept wait")); }

TEST_P(Suspension, WorldEndsInANoexceptFunction_ProcessLivesOn) {
  auto w = world();
  WaitQueue never;
  const auto outcome = w.run([&](int) { waits_and_must_not_throw(never); });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a noexcept wait"));
  EXPECT_TRUE(outcome.failures.empty());
}

void fail() { throw std::runtime_error("out of a noexcept function"); }
void throws_and_must_not() noexcept { fail(); }

TEST_P(Suspension, StdTerminate_IsTheFailureOfItsRank) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) throws_and_must_not();
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(w.sink.told, std::vector<std::string>{"rank 1: out of a noexcept function"});
  EXPECT_EQ(outcome.ranks[1], RankEnd::failed);
  EXPECT_EQ(outcome.ranks[0], RankEnd::aborted);
}

// If std::thread's destructor calls std::terminate() during unwinding, std::current_exception() returns null. So the
// failure's text names the likely cause, not the exception.
[[gnu::noinline]] void loses_its_thread() {
  std::thread lost([] { this_rank::sleep_for(1h); });
  fail();
  lost.join();
}

TEST_P(Suspension, StdTerminateOfAnUnjoinedThread_NamesThePlace) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) loses_its_thread();
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].what,
            "std::terminate() was called; it may be that a std::thread was destroyed before its join()");
  const auto frames = outcome.failures[0].thrown_at.frames();
  const auto here = [](const Frame& frame) { return frame.function.find("loses_its_thread") != std::string::npos; };
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), here));
}

}  // namespace
}  // namespace rehearse::exec::test
