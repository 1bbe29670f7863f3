// SPDX-License-Identifier: BSD-3-Clause
// Contract: a jump changes the clocks that a rank's program reads. It does not change the world's time, other ranks'
// clocks or, unless all clocks jump, the monotonic clock.
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include <ATen/ops/ones.h>
#include <sys/time.h>

#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

// How far three clocks advance over a barrier.
struct Passed {
  system_clock::duration wall;
  steady_clock::duration monotonic;
  std::time_t seconds;
};

Passed over_a_barrier(RankContext& ctx) {
  const auto wall = system_clock::now();
  const auto monotonic = steady_clock::now();
  const auto seconds = std::time(nullptr);
  ctx.group().barrier()->wait();
  return {system_clock::now() - wall, steady_clock::now() - monotonic, std::time(nullptr) - seconds};
}

TEST(ClockJump, OfTheWallClock_IsTheRanksAlone) {
  const auto report = run({"clock_jump rank=1 at=barrier#1 by=1h"}, [](RankContext& ctx) {
    const auto passed = over_a_barrier(ctx);
    EXPECT_EQ(passed.wall - passed.monotonic, ctx.rank() == 1 ? hours(1) : hours(0));
    EXPECT_EQ(passed.seconds, ctx.rank() == 1 ? 3600 : 0);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(fired(report), R"(rank 1 in barrier #1 on group "world")");
}

TEST(ClockJump, MayGoBack_AndAddsUp) {
  const auto body = [](RankContext& ctx) {
    const auto first = over_a_barrier(ctx);
    EXPECT_EQ(first.wall - first.monotonic, -std::chrono::seconds(5));
    const auto second = over_a_barrier(ctx);
    EXPECT_EQ(second.wall - second.monotonic, -std::chrono::seconds(5));
    timeval day{};
    gettimeofday(&day, nullptr);
    EXPECT_EQ(day.tv_sec, system_clock::to_time_t(system_clock::now()));
  };
  EXPECT_EQ(run({"clock_jump at=barrier by=-5s times=2"}, body).faults[0].times, 8u);
}

TEST(ClockJump, OfAllClocks_IsTheMonotonicOnesToo) {
  const auto report = run({"clock_jump rank=0 at=barrier#1 by=1h clock=all"}, [](RankContext& ctx) {
    const auto passed = over_a_barrier(ctx);
    EXPECT_EQ(passed.wall, passed.monotonic);
    EXPECT_EQ(passed.wall > hours(1), ctx.rank() == 0);
    EXPECT_LT(ctx.now(), VirtualTime(hours(1)));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// Each rank drops requests that are too old by its own clock, or all take the decision of rank 0. Only a jump shows the
// difference.
Report serve(bool own_clock, const std::vector<std::string>& faults) {
  return run(faults, [own_clock](RankContext& ctx) {
    const auto arrived = system_clock::now();
    ctx.group().barrier()->wait();
    auto kept = at::full({1}, system_clock::now() - arrived < milliseconds(500) ? 4 : 1, at::kLong);
    if (!own_clock) ctx.group().broadcast(kept)->wait();
    auto batch = at::ones({kept.item<std::int64_t>()});
    ctx.group().allreduce(batch)->wait();
  });
}

TEST(ClockJump, OfARankThatDropsRequestsByItsOwnClock_IsAMismatch) {
  EXPECT_EQ(serve(true, {}).verdict, Verdict::ok);
  EXPECT_EQ(serve(false, {"clock_jump rank=1 at=barrier#1 by=1h"}).verdict, Verdict::ok);
  const auto report = serve(true, {"clock_jump rank=1 at=barrier#1 by=1h"});
  EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
}

// A deadline by the wall clock is over at once; one by the monotonic clock is not.
TEST(ClockJump, AtATime_EndsDeadlinesThatBeginThen) {
  const auto report = run({"clock_jump rank=2 after=1ms by=1h"}, [](RankContext& ctx) {
    const auto wall = system_clock::now() + hours(1);
    const auto monotonic = steady_clock::now() + milliseconds(5);
    exec::this_rank::sleep_for(milliseconds(2));
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    if (ctx.rank() == 2) never.wait_until(lock, wall);
    EXPECT_EQ(ctx.now(), VirtualTime(milliseconds(2)));
    never.wait_until(lock, monotonic);
    EXPECT_EQ(ctx.now(), VirtualTime(milliseconds(5)));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(fired(report), "rank 2");
}

TEST(ClockJump, DoesNotTouchTimeouts) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 3) exec::this_rank::sleep_for(std::chrono::minutes(20));
    ctx.group().barrier()->wait();
  };
  EXPECT_EQ(run({"clock_jump at=barrier#1 by=24h clock=all"}, body).verdict, Verdict::ok);
}

TEST(ClockJump, IsOfOneWorld) {
  run({"clock_jump after=0s by=1h"}, [](RankContext& ctx) { ctx.group().barrier()->wait(); });
  run(std::vector<std::string>{}, [](RankContext& ctx) {
    const auto passed = over_a_barrier(ctx);
    EXPECT_EQ(passed.wall, passed.monotonic);
  });
}

}  // namespace
}  // namespace rehearse::test
