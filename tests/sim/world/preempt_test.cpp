// SPDX-License-Identifier: BSD-3-Clause
// Contract: if worlds are preempted, a few seeds find races between calls that never block (a store's calls, locks and
// unlocks). Without preemption, no seed finds them. Correct programs stay correct, and a seed still determines the run.
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/sim/world.h>

// Programs as users write them.
namespace racing {

using Bytes = std::vector<std::uint8_t>;
using rehearse::RankContext;

void elects_by_check_and_set(RankContext& ctx) {
  auto& leaders = *ctx.store();
  if (!leaders.check({"leader"})) {
    leaders.set("leader", Bytes{1});
    leaders.add("leaders", 1);
  }
  ctx.group().barrier()->wait();
  ctx.expect(leaders.add("leaders", 0) == 1, "there is one leader");
}

void elects_by_add(RankContext& ctx) {
  if (ctx.store()->add("first", 1) == 1) ctx.store()->add("leaders", 1);
  ctx.group().barrier()->wait();
  ctx.expect(ctx.store()->add("leaders", 0) == 1, "there is one leader");
}

void asks_where_it_is(RankContext& ctx) {
  const auto where = rehearse::exec::CallSite::capture().describe();
  ctx.group().barrier()->wait();
  ctx.expect(where.find("asks_where_it_is") != std::string::npos, "the place has a name");
}

void locks_in_two_orders(RankContext& ctx) {
  std::mutex a, b;
  std::thread other([&] {
    const std::lock_guard first(b);
    const std::lock_guard second(a);
  });
  {
    const std::lock_guard first(a);
    const std::lock_guard second(b);
  }
  other.join();
  ctx.group().barrier()->wait();
}

template <class Mutex>
void counts_in_two_steps(RankContext& ctx) {
  Mutex mutex;
  int count = 0;
  const auto count_one = [&] {
    int seen = 0;
    {
      const std::lock_guard lock(mutex);
      seen = count;
    }
    const std::lock_guard lock(mutex);
    count = seen + 1;
  };
  std::thread other(count_one);
  count_one();
  other.join();
  ctx.expect(count == 2, "both have counted");
}

void counts_in_one_step(RankContext& ctx) {
  std::mutex mutex;
  int count = 0;
  const auto count_one = [&] {
    const std::lock_guard lock(mutex);
    ++count;
  };
  std::thread other(count_one);
  count_one();
  other.join();
  ctx.expect(count == 2, "both have counted");
}

}  // namespace racing

namespace rehearse {
namespace {

constexpr int kSeeds = 60;

Report run_seed(const World::Body& body, std::uint64_t seed, std::optional<bool> preempt, int ranks) {
  return World({.ranks = ranks, .seed = seed, .preempt = preempt, .explain_failures = false}).run(body);
}

// The number of the kSeeds seeds that end in this verdict. All other seeds must end well.
int seeds_that_end_in(Verdict verdict, const World::Body& body, std::optional<bool> preempt, int ranks = 2) {
  int count = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto report = run_seed(body, static_cast<std::uint64_t>(seed), preempt, ranks);
    if (report.verdict == verdict) {
      ++count;
    } else {
      EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    }
  }
  return count;
}

TEST(Preempt, CheckAndSetOfAStore_MakesTwoLeaders) {
  for (const auto& [ranks, failing] : {std::pair{2, 21}, {3, 28}, {8, 41}}) {
    EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::elects_by_check_and_set, {}, ranks), 0);
    EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::elects_by_check_and_set, true, ranks), failing);
  }
}

TEST(Preempt, LocksInTwoOrders_AreADeadlock) {
  EXPECT_EQ(seeds_that_end_in(Verdict::deadlock, racing::locks_in_two_orders, {}), 0);
  EXPECT_EQ(seeds_that_end_in(Verdict::deadlock, racing::locks_in_two_orders, true), 34);
}

TEST(Preempt, UpdateBetweenTwoLocks_IsLost) {
  EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::counts_in_two_steps<std::mutex>, {}), 0);
  EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::counts_in_two_steps<std::mutex>, true), 53);
  EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::counts_in_two_steps<std::shared_mutex>, true), 53);
}

TEST(Preempt, WhatIsRight_StaysRight) {
  for (const int ranks : {2, 3, 8}) {
    EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::elects_by_add, true, ranks), 0);
    EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::counts_in_one_step, true, ranks), 0);
  }
}

TEST(Preempt, ReadingLineTables_IsNoDecision) {
  EXPECT_EQ(seeds_that_end_in(Verdict::check_failed, racing::asks_where_it_is, true), 0);
}

TEST(Preempt, ASeed_IsOneRun) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto first = run_seed(racing::counts_in_one_step, seed, true, 3);
    EXPECT_EQ(run_seed(racing::counts_in_one_step, seed, true, 3).identity, first.identity);
    EXPECT_NE(run_seed(racing::counts_in_one_step, seed, false, 3).identity, first.identity);
    EXPECT_EQ(first.schedule, "random+preempt");
  }
}

}  // namespace
}  // namespace rehearse
