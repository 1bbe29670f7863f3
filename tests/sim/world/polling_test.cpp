// SPDX-License-Identifier: BSD-3-Clause
// Contract: a loop around isCompleted() or Store::check() sees the other ranks' actions. If no rank is left to act, the
// world ends as a livelock that names the rank and what it polls.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"
#include "report/writers/culprits.h"

namespace rehearse {
namespace {

using namespace std::chrono_literals;
using rehearse::test::BitEqual;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class Polling : public testing::TestWithParam<std::tuple<int, std::uint64_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int last() const { return ranks() - 1; }
  std::string name(int rank) const { return "rank " + std::to_string(rank); }

  Report run(const World::Body& body, std::chrono::milliseconds timeout = 30min) const {
    return World({.ranks = ranks(), .seed = std::get<1>(GetParam()), .timeout = timeout, .explain_failures = false})
        .run(body);
  }
};

TEST_P(Polling, IsCompleted_EndsWithTheCallOfTheLastRank) {
  std::vector<VirtualTime> ends;
  const auto report = run([&](RankContext& ctx) {
    if (ctx.rank() == last()) exec::this_rank::sleep_for(1s);
    auto sum = at::full({3}, ctx.rank() + 1.0);
    const auto work = ctx.group().allreduce(sum);
    while (!work->isCompleted()) {
    }
    ends.push_back(ctx.now());
    EXPECT_TRUE(work->isSuccess());
    EXPECT_THAT(sum, BitEqual(at::full({3}, ranks() * (ranks() + 1) / 2.0)));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, kTimeZero + 1s + 10us * last());
  EXPECT_EQ(ends, std::vector<VirtualTime>(static_cast<std::size_t>(ranks()), report.end_time));
}

// A look that finds is no poll: the next look may still come too early, as in a real job.
TEST(Looks, ThatFindTheirKeys_DoNotMakeTheNextOneWait) {
  for (const int found : {0, 1, 3}) {
    int missed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      World({.ranks = 2, .seed = seed}).run([&](RankContext& ctx) {
        if (ctx.rank() == 1) return ctx.store()->set("other", std::string("1"));
        ctx.store()->set("own", std::string("1"));
        for (int i = 0; i < found; ++i) EXPECT_TRUE(ctx.store()->check({"own"}));
        missed += ctx.store()->check({"other"}) ? 0 : 1;
      });
    }
    EXPECT_GT(missed, 0) << found;
    EXPECT_LT(missed, 40) << found;
  }
}

// A loop may also wait until a key is gone.
TEST(Looks, ThatFindUntilAKeyIsDeleted_LetTimePass) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 1) {
      exec::this_rank::sleep_for(1s);
      ctx.store()->deleteKey("busy");
      return;
    }
    ctx.store()->set("busy", std::string("1"));
    while (ctx.store()->check({"busy"})) {
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// What a rank asked for long ago is not what it waits for now.
TEST_P(Polling, ChecksBeforeALongPause_AreOver) {
  const auto report = run([&](RankContext& ctx) {
    for (int i = 0; ctx.rank() == last() && i < 5; ++i) {
      EXPECT_FALSE(ctx.store()->check({"stop"}));
      exec::this_rank::sleep_for(1ms);
    }
    if (ctx.rank() == last()) exec::this_rank::sleep_for(2h);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, StartsWith(name(last()) + " was still in a sleep"));
}

// The world has no timeout, because isCompleted() would be true after one.
TEST_P(Polling, IsCompletedOfACallThatOneRankLeavesOut_NamesCallAndRank) {
  const auto body = [&](RankContext& ctx) {
    if (ctx.rank() == last()) return;
    const auto work = ctx.group().allreduce(at::ones({3}));
    while (!work->isCompleted()) {
    }
    ADD_FAILURE() << "it cannot complete";
  };
  const auto report = run(body, 0ms);
  EXPECT_EQ(report.verdict, Verdict::livelock);
  const int looks = std::max(1'000'000 / ranks(), 1'000);
  // The place is in a lambda, for which an optimising compiler may leave no user frame.
  EXPECT_THAT(
      report.headline,
      MatchesRegex("rank 0 polls allreduce #1 on group \"world\" forever(, at polling_test.cpp:[0-9]+ in .*lambda)?: " +
                   name(last()) + " has ended without that call \\(stopped after " + std::to_string(looks) +
                   " polls, because no rank is left to change their answer\\)"));
  ASSERT_EQ(report.rank_lines.size(), static_cast<std::size_t>(ranks()));
  for (const auto& line : report.rank_lines) {
    EXPECT_EQ(line.state, line.rank == last() ? RankOutcome::returned : RankOutcome::blocked) << line.rank;
    EXPECT_EQ(line.waits_for, line.rank == last() ? std::vector<int>{} : std::vector{last()}) << line.rank;
  }
  EXPECT_LE(report.end_time, kTimeZero + 1ms * looks);
}

// Each rank polls its receive before it sends.
TEST_P(Polling, ReceivesOfARing_AreSeenAsTheyWereDuringTheHang) {
  const auto report = run([&](RankContext& ctx) {
    auto given = at::ones({3});
    const auto work = ctx.group().recv(given, (ctx.rank() + ranks() - 1) % ranks());
    while (!work->isCompleted()) {
    }
    work->wait();
    ctx.group().send(given, (ctx.rank() + 1) % ranks())->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock) << report.headline;
  for (const auto& line : report.rank_lines) {
    EXPECT_THAT(line.doing, HasSubstr("(nothing has been sent)")) << line.rank;
    EXPECT_LT(line.at, kTimeZero + 1s) << line.rank;
  }
}

TEST_P(Polling, IsCompleted_EndsWithTheTimeOfACallThatOneRankLeavesOut) {
  int ended = 0;
  const auto report = run([&](RankContext& ctx) {
    if (ctx.rank() == last()) return;
    const auto work = ctx.group().allreduce(at::ones({3}));
    while (!work->isCompleted()) {
    }
    EXPECT_EQ(ctx.now(), kTimeZero + 30min);
    EXPECT_FALSE(work->isSuccess());
    ++ended;
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(ended, last());
}

TEST_P(Polling, StoreCheck_SeesTheKeyThatTheLastRankSets) {
  int finished = 0;
  const auto report = run([&](RankContext& ctx) {
    if (ctx.rank() == last()) {
      exec::this_rank::sleep_for(1s);
      ctx.store()->set("ready", std::vector<std::uint8_t>{7});
    }
    while (!ctx.store()->check({"ready"})) {
    }
    EXPECT_EQ(ctx.now(), kTimeZero + 1s);
    EXPECT_EQ(ctx.store()->get("ready"), std::vector<std::uint8_t>{7});
    ++finished;
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, kTimeZero + 1s);
  EXPECT_EQ(finished, ranks());
}

TEST_P(Polling, StoreCheckOfAnUnsetKey_NamesTheRankThatLooks) {
  const auto report = run([&](RankContext& ctx) {
    while (ctx.rank() == last() && !ctx.store()->check({"never"})) {
    }
    ctx.group().barrier()->wait();
    ADD_FAILURE() << "nobody sets the key";
  });
  EXPECT_EQ(report.verdict, Verdict::livelock);
  const auto others = ranks() == 2 ? std::string("rank 0 waits") : "ranks 0-" + std::to_string(last() - 1) + " wait";
  EXPECT_THAT(report.headline,
              StartsWith(name(last()) +
                         " polls forever in store check of key \"never\", which is not set, at polling_test.cpp:"));
  EXPECT_THAT(report.headline, EndsWith("lambda; " + others + " for it in barrier #1 on group \"world\""));
  ASSERT_EQ(report.rank_lines.size(), static_cast<std::size_t>(ranks()));
  for (const auto& line : report.rank_lines) {
    EXPECT_EQ(line.state, RankOutcome::blocked) << line.rank;
    EXPECT_EQ(line.waits_for, line.rank == last() ? std::vector<int>{} : std::vector{last()}) << line.rank;
  }
}

// The rank also has another call in flight.
TEST(PollForEver, NamesTheCallThatLooks) {
  using Look = std::function<void(c10d::Store&)>;
  const auto headline = [](const Look& look) {
    const auto report = World({.ranks = 2, .explain_failures = false}).run([&](RankContext& ctx) {
      if (ctx.rank() == 0) return;
      ctx.store()->set("there", "0");
      const auto unseen = ctx.group().allreduce(at::ones({3}));
      for (;;) look(*ctx.store());
    });
    EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
    return report.headline;
  };
  const auto polls = [](const std::string& call) { return StartsWith("rank 1 polls forever in " + call + " at "); };
  EXPECT_THAT(headline([](auto& store) { store.check({"a", "b"}); }), polls("store check of keys \"a\", \"b\""));
  EXPECT_THAT(headline([](auto& store) { store.get("there"); }), polls("store get of key \"there\""));
  EXPECT_THAT(headline([](auto& store) { store.add("there", 0); }), polls("store add of 0 to key \"there\""));
  EXPECT_THAT(headline([](auto& store) { store.getNumKeys(); }), polls("store getNumKeys"));
  EXPECT_THAT(headline([](auto& store) { store.queueLen("q"); }), polls("store queueLen of key \"q\""));
}

// Only the call of the store is known, whatever lies between two of them.
TEST(PollForEver, WithYieldsOrSleeps_NamesTheKeyAndNotARankThatWaits) {
  for (const bool sleeps : {false, true}) {
    const auto report = World({.ranks = 3, .explain_failures = false}).run([sleeps](RankContext& ctx) {
      while (ctx.rank() == 1 && !ctx.store()->check({"go"})) {
        sleeps ? exec::this_rank::sleep_for(20us) : std::this_thread::yield();
      }
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::livelock);
    EXPECT_THAT(report.headline, StartsWith("rank 1 polls forever in store check of key \"go\", which is not set"));
    EXPECT_THAT(report.rank_lines[1].doing, HasSubstr("store check of key \"go\""));
  }
}

// The rank waits for its thread, and does not go on to its barrier because the end of the run ends the thread.
TEST(PollForEver, InAThreadThatTheRankJoins_NamesTheKeyAndTheLineOfThePoll) {
  for (const bool sleeps : {false, true}) {
    const auto report = World({.ranks = 3, .explain_failures = false}).run([sleeps](RankContext& ctx) {
      std::thread taker([&] {
        while (ctx.rank() == 1 && !ctx.store()->check({"batch"})) {
          if (sleeps) exec::this_rank::sleep_for(5ms);
        }
      });
      taker.join();
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, sleeps ? Verdict::timeout : Verdict::livelock) << report.headline;
    EXPECT_THAT(report.headline,
                MatchesRegex("rank 1 (was still polling|polls forever) in store check of key \"batch\".*"));
    EXPECT_THAT(report.rank_lines[1].doing, HasSubstr("store check of key \"batch\""));
    EXPECT_THAT(report.rank_lines[1].where.text, HasSubstr("lambda"));
    EXPECT_EQ(sim::culprits_of(report), std::vector{1});
  }
}

TEST(PollForEver, WithPauses_IsOneLineOfTheProgramWhateverTheSeed) {
  std::set<std::string> headlines;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = World({.ranks = 4, .seed = seed, .explain_failures = false}).run([](RankContext& ctx) {
      while (ctx.rank() > 0 && !ctx.store()->check({"go"})) exec::this_rank::sleep_for(ctx.rank() * 1s);
    });
    EXPECT_EQ(report.verdict, Verdict::livelock);
    headlines.insert(report.headline);
  }
  ASSERT_EQ(headlines.size(), 1u);
  EXPECT_THAT(*headlines.begin(),
              StartsWith("ranks 1-3 poll forever in store check of key \"go\", which is not set, at polling_test"));
}

TEST(PollForEver, OfTheSecondOfTwoCalls_NamesThatCall) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    const auto first = ctx.group().allreduce(at::ones({3}));
    const auto second = ctx.group().allreduce(at::ones({3}));
    while (!second->isCompleted()) {
    }
  };
  const auto report = World({.ranks = 2, .timeout = 0ms, .explain_failures = false}).run(body);
  EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
  EXPECT_THAT(report.headline, StartsWith("rank 1 polls allreduce #2 on group \"world\" forever, at "));
}

// Rank 1 waits for a key again and again, with short timeouts and pauses. Rank 2 always has something to do. All others
// wait for these two ranks.
Report wait_in_vain(const World::Body& wait, std::uint64_t steps_max = 1'000'000) {
  return World({.ranks = 4, .steps_max = steps_max, .explain_failures = false}).run([&](RankContext& ctx) {
    if (ctx.rank() == 1) wait(ctx);
    while (ctx.rank() == 2) {
      ctx.store()->set("other", "0");
      exec::this_rank::sleep_for(700ms);
    }
    ctx.group().barrier()->wait();
  });
}

void wait_and_pause(c10d::Store& store) {
  try {
    store.wait({"never"}, 1s);
  } catch (const c10::DistStoreError&) {
  }
  exec::this_rank::sleep_for(5s);
}

TEST(WaitsInVain, WithPauses_NameTheKey) {
  const auto wait = [](RankContext& ctx) {
    for (;;) wait_and_pause(*ctx.store());
  };
  const auto timeout = wait_in_vain(wait);
  EXPECT_EQ(timeout.verdict, Verdict::timeout);
  EXPECT_THAT(
      timeout.headline,
      StartsWith("rank 1 was still polling in store wait for key \"never\", which was not set, at polling_test.cpp:"));
  const auto budget = wait_in_vain(wait, 1'000);
  EXPECT_EQ(budget.verdict, Verdict::step_budget);
  EXPECT_EQ(budget.rank_lines[1].doing, "a sleep between polls in store wait for key \"never\"");
}

TEST(WaitsInVain, UntilTheKeyIsThere_AreOver) {
  const auto report = wait_in_vain(
      [](RankContext& ctx) {
        for (int i = 0; i < 5; ++i) wait_and_pause(*ctx.store());
        ctx.store()->set("never", "0");
        ctx.store()->wait({"never"}, 1s);
        for (;;) exec::this_rank::sleep_for(1s, "a computation");
      },
      70);
  EXPECT_EQ(report.verdict, Verdict::step_budget);
  EXPECT_THAT(report.rank_lines[1].doing, Not(HasSubstr("poll")));
  EXPECT_LT(report.end_time, kTimeZero + 40s);  // soon after the waits, which would otherwise count as polls
}

INSTANTIATE_TEST_SUITE_P(RanksAndSeeds, Polling,
                         testing::Combine(testing::Values(2, 3, 16, 64, 256), testing::Values(1, 2, 3)));

}  // namespace
}  // namespace rehearse
