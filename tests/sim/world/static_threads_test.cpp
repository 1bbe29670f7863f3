// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a program keeps a thread pool in a static variable, all ranks and all later worlds of the process share
// the pool. The report of each of these worlds says so. The test has a program of its own, because the pool outlives
// its worlds.
#include <future>

#include <c10/core/thread_pool.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace {

using rehearse::RankContext;
using rehearse::Verdict;
using testing::ElementsAre;
using testing::MatchesRegex;

c10::ThreadPool& shared_pool() {
  static c10::ThreadPool pool(2);
  return pool;
}

void uses_the_shared_pool(RankContext& ctx) {
  std::promise<int> answer;
  shared_pool().run([&] { answer.set_value(ctx.rank()); });
  EXPECT_EQ(answer.get_future().get(), ctx.rank());
}

void uses_a_pool_of_its_own(RankContext& ctx) {
  c10::ThreadPool pool(2);
  std::promise<int> answer;
  pool.run([&] { answer.set_value(ctx.rank()); });
  EXPECT_EQ(answer.get_future().get(), ctx.rank());
}

// One test, because its worlds must run in order. The process ends well, because the pool joins its threads.
TEST(StaticThreads, PoolInAStaticVariable_IsRemarked) {
  const auto of_its_own = rehearse::World({.ranks = 2}).run(uses_a_pool_of_its_own);
  EXPECT_EQ(of_its_own.verdict, Verdict::ok);
  EXPECT_THAT(of_its_own.remarks, testing::IsEmpty());

  const auto is_named =
      ElementsAre(MatchesRegex("rank [01] started a thread at static_threads_test.cpp:[0-9]+ in .* while it "
                               "initialised a static variable. All ranks of a simulation share .*"));
  const auto first = rehearse::World({.ranks = 2}).run(uses_the_shared_pool);
  EXPECT_EQ(first.verdict, Verdict::ok);
  EXPECT_THAT(first.remarks, is_named);

  const auto later = rehearse::World({.ranks = 2}).run(uses_the_shared_pool);
  EXPECT_EQ(later.verdict, Verdict::deadlock);
  EXPECT_THAT(later.remarks, is_named);
}

}  // namespace
