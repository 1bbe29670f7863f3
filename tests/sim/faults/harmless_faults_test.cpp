// SPDX-License-Identifier: BSD-3-Clause
// Contract: a fault that does not fire changes nothing in a run, whatever the program polls, sleeps or waits for. A
// poll does not end other ranks' waits before their time.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Draws numbers from a seed. All ranks draw the same ones, so that their calls match.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  int below(int end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int>(state_ % static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_;
};

void look(RankContext& ctx, int looks, const std::string& key) {
  for (int k = 0; k < looks; ++k) {
    if (ctx.store()->check({key})) return;
  }
}

// A step that one of three ranks begins late, by microseconds or by seconds. The other ranks wait or poll for that
// rank. In some steps, they make only a limited number of polls.
void take_step(RankContext& ctx, const Group& group, Draws& draws, const std::string& key) {
  const int late = draws.below(3), kind = draws.below(5), looks = 1 << draws.below(12);
  const auto pause = microseconds(1 << draws.below(24));
  if (ctx.rank() == late) {
    exec::this_rank::sleep_for(pause);
    ctx.store()->set(key, "done");
    if (kind == 0) look(ctx, looks, "never");
  } else if (kind == 1) {
    while (!ctx.store()->check({key})) {
    }
  } else if (kind == 2) {
    look(ctx, looks, key);
  }
  const auto work = group.allreduce(at::ones({2}));
  while (kind == 3 && !work->isCompleted()) {
  }
  work->wait();
}

// The last rank returns at once, so a fault at a later time finds it gone.
World::Body random_program(std::uint64_t seed) {
  return [seed](RankContext& ctx) {
    if (ctx.rank() == 3) return;
    const auto group = ctx.new_local_group({0, 1, 2}, "three");
    Draws draws(seed);
    for (int step = 0; step < 3; ++step) take_step(ctx, group, draws, "step " + std::to_string(step));
  };
}

Report run_program(std::uint64_t seed, const std::vector<std::string>& faults) {
  auto options = world_with(faults);
  options.seed = seed;
  options.timeout = seconds(4);
  options.explain_failures = false;
  return World(options).run(random_program(seed));
}

TEST(FaultsThatDoNotFire, ChangeNothing) {
  const std::vector<std::string> at_times = {
      "crash rank=3 optional=true after=", "heal optional=true after=", "lose_key key=never optional=true after=",
      "clock_jump rank=3 by=1h optional=true after="};
  int polls = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto without = run_program(seed, {});
    polls += without.switches > 100 ? 1 : 0;
    const auto at = std::to_string(1 << (seed % 23)) + "us";
    const auto with =
        run_program(seed, {at_times[seed % at_times.size()] + at, "crash rank=3 after=7s optional=true",
                           "restart rank=0 after=10us optional=true", "crash rank=1 call=barrier#1 optional=true"});
    EXPECT_EQ(with.identity, without.identity) << "seed " << seed;
    EXPECT_EQ(with.verdict, without.verdict) << "seed " << seed << ": " << with.headline;
    EXPECT_EQ(with.headline, without.headline) << "seed " << seed;
    EXPECT_EQ(with.end_time, without.end_time) << "seed " << seed;
  }
  EXPECT_GT(polls, 10);
}

// Rank 0's polls must end before rank 1's sleep ends, and before the timeout of ranks 2 and 3, which wait for rank 0.
TEST(Polls, DoNotBringTheEndOfAnotherRanksSleep) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto options = world_with({"crash rank=1 after=1h optional=true"});
    options.seed = seed;
    options.timeout = seconds(5);
    const auto report = run(options, [](RankContext& ctx) {
      if (ctx.rank() == 1) return exec::this_rank::sleep_for(seconds(10));
      for (int k = 0; ctx.rank() == 0 && k < 1'000; ++k) ctx.store()->check({"never"});
      EXPECT_LT(ctx.now(), kTimeZero + milliseconds(100));
      ctx.new_local_group({0, 2, 3}, "three").barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_EQ(report.end_time, kTimeZero + seconds(10));
  }
}

// Other activity between a rank's polls, here heartbeats, must not keep time from passing.
TEST(Polls, BetweenHeartbeats_LetTimePass) {
  const auto report = run(world_with({}), [](RankContext& ctx) {
    const auto store = ctx.store();
    if (ctx.rank() == 0) {
      exec::this_rank::sleep_for(seconds(1));
      store->set("go", std::vector<std::uint8_t>{1});
    }
    while (ctx.rank() == 1 && !store->check({"go"})) store->add("beats", 1);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_LT(report.end_time, kTimeZero + milliseconds(1'010));
}

TEST(Polls, BetweenHeartbeatsForEver_AreALivelock) {
  const auto report = run(world_with({}), [](RankContext& ctx) {
    while (ctx.rank() == 1 && !ctx.store()->check({"never"})) ctx.store()->add("beats", 1);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
  EXPECT_TRUE(report.headline.starts_with("rank 1 polls forever in store check of key \"never\"")) << report.headline;
}

TEST(Polls, ForSuccess_AreLooksToo) {
  const auto report = run(world_with({}), [](RankContext& ctx) {
    if (ctx.rank() == 0) exec::this_rank::sleep_for(seconds(1));
    const auto work = ctx.group().barrier();
    while (!work->isSuccess()) {
    }
    work->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_LT(report.end_time, kTimeZero + milliseconds(1'010));
}

// A loop of polls that never ends must stay cheap.
TEST(Polls, WithoutEnd_EndAsWhatTheyAre) {
  for (const auto timeout : {milliseconds(500), milliseconds(seconds(60)), milliseconds(std::chrono::minutes(30))}) {
    for (const int ranks : {2, 5, 64}) {
      auto options = world_with({}, ranks);
      options.timeout = timeout;
      options.explain_failures = false;
      const auto polls = [](RankContext& ctx) {
        while (ctx.rank() == 0 && !ctx.store()->check({"never"})) {
        }
        ctx.group().barrier()->wait();
      };
      const auto report = World(options).run(polls);
      EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
      EXPECT_TRUE(report.headline.starts_with("rank 0 polls forever in store check of key \"never\""))
          << report.headline;
      EXPECT_LT(report.switches, 5'000'000u);
    }
  }
}

}  // namespace
}  // namespace rehearse::test
