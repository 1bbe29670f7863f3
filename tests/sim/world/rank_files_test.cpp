// SPDX-License-Identifier: BSD-3-Clause
// Reports about ranks that wait for each other through the operating system.
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

namespace {

using rehearse::RankContext;
using rehearse::Verdict;

// Rank 1 writes only after the barrier, and rank 0 reads before it.
TEST(RankFiles, PipeAndCollectiveInACircle_AreADeadlockWithBothCalls) {
  for (const int ranks : {2, 3, 8}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    rehearse::World world({.ranks = ranks});
    const auto report = world.run([&](RankContext& ctx) {
      char byte = 0;
      if (ctx.rank() == 0) {
        EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
      }
      ctx.group().barrier()->wait();
      if (ctx.rank() == 1) {
        EXPECT_EQ(::write(pipe[1], &byte, 1), 1);
      }
    });
    const auto text = rehearse::sim::to_text(report);
    EXPECT_EQ(report.verdict, Verdict::deadlock) << text;
    const auto call = "in read() of a pipe (file descriptor " + std::to_string(pipe[0]) + ")";
    EXPECT_EQ(text.find("DEADLOCK: rank 0 waits forever " + call + " at rank_files_test.cpp:"), 0u) << text;
    EXPECT_NE(text.find("blocked " + call + ", at rank_files_test.cpp:"), std::string::npos) << text;
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

TEST(RankFiles, BarrierOfThreadsWithOneTooFew_IsADeadlockWithItsCount) {
  pthread_barrier_t barrier;
  ASSERT_EQ(::pthread_barrier_init(&barrier, nullptr, 3), 0);
  rehearse::World world({.ranks = 2});
  const auto report = world.run([&](RankContext&) { ::pthread_barrier_wait(&barrier); });
  const auto text = rehearse::sim::to_text(report);
  EXPECT_EQ(report.verdict, Verdict::deadlock) << text;
  EXPECT_NE(text.find("a barrier (pthread_barrier_wait) to which 2 of 3 threads have come"), std::string::npos) << text;
  EXPECT_EQ(::pthread_barrier_destroy(&barrier), 0);
}

}  // namespace
