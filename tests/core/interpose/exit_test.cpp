// SPDX-License-Identifier: BSD-3-Clause
// exit() on a rank fails that rank, and does not end the process of all ranks.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/call_site/user_frame.h"
#include "core/exec/world_fixture.h"

namespace {

// This function is outside of Rehearse's namespaces, because without line tables, reports take code of those namespaces
// for library code.
[[noreturn]] void leave(int status) { std::exit(status); }

}  // namespace

namespace rehearse::exec::test {
namespace {

class Exits : public Worlds {};
REHEARSE_IN_WORLDS(Exits);

TEST_P(Exits, Exit_IsTheRanksFailure) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    this_rank::sleep_for(1s);
    if (rank == 1) leave(3);
    this_rank::sleep_for(1h);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, 1);
  EXPECT_EQ(outcome.failures[0].at, at(1s));
  EXPECT_EQ(outcome.failures[0].what,
            "exit(3) was called; a rank ends by returning from its body, or fails by an exception");
  EXPECT_EQ(user_frame(outcome.failures[0].thrown_at).file, __FILE__);
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(outcome.ranks[static_cast<std::size_t>(rank)], rank == 1 ? RankEnd::failed : RankEnd::aborted) << rank;
  }
}

TEST_P(Exits, ExitInAThread_FailsItsRank) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    if (rank != 0) return;
    std::thread thread([] { std::exit(0); });
    thread.join();
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, 0);
}

TEST_P(Exits, OtherWaysOut_FailTheRankToo) {
  using Way = void (*)(int);
  const std::pair<Way, const char*> ways[] = {{_exit, "_exit"}, {std::_Exit, "_exit"}, {std::quick_exit, "quick_exit"}};
  for (const auto& [way, name] : ways) {
    auto w = world();
    const auto outcome = w.run([way = way](int rank) {
      if (rank == 1) way(0);
    });
    EXPECT_EQ(outcome.ending, Ending::rank_failed);
    ASSERT_EQ(outcome.failures.size(), 1u);
    EXPECT_EQ(outcome.failures[0].what,
              name + std::string("(0) was called; a rank ends by returning from its body, or fails by an exception"));
  }
}

// Real jobs catch errors and retry, so a rank may also catch the end of the world. After it has caught the end a
// thousand times, its fiber is left behind.
TEST_P(Exits, LoopThatCatchesEverything_EndsWithTheWorld) {
  auto w = world();
  WaitQueue never;
  int caught = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) {
      this_rank::sleep_for(25s);
      throw std::runtime_error("boom");
    }
    while (rank == 0) {
      try {
        never.wait(FixedObserver("what does not come"), this_rank::now() + 10s);
      } catch (const std::exception&) {
        ++caught;
      }
    }
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(caught, 1000);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].what, "boom");
}

// A process that a rank forks does not belong to the world.
TEST_P(Exits, ForkedProcess_MayExit) {
  auto w = world();
  int status = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    const pid_t child = fork();
    if (child == 0) std::exit(7);
    EXPECT_EQ(waitpid(child, &status, 0), child);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace rehearse::exec::test
