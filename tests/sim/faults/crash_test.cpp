// SPDX-License-Identifier: BSD-3-Clause
// Contract: a crashed incarnation of a rank never runs again, not even its destructors and catch blocks. Its peers
// learn of the crash by their timeout or by a broken connection, and the report names the rank.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include <ATen/ops/ones.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

constexpr const char* kTwelfth = R"(rank 3 in allreduce #12 on group "world")";

TEST(Crash, InACollective_IsADeadlockOfThatRank) {
  const auto report = run({"crash rank=3 at=allreduce#12"});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(allreduce #12 on group "world": rank 3 crashed and will never come)");
  EXPECT_EQ(fired(report), kTwelfth);
  EXPECT_EQ(report.rank_lines[3].state, RankOutcome::crashed);
  EXPECT_EQ(report.rank_lines[3].doing, R"(allreduce #12 on group "world")");
  EXPECT_EQ(report.rank_lines[3].last, R"(allreduce #11 on group "world")");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(report.rank_lines[rank].waits_for, std::vector<int>{3});
}

TEST(Crash, OfOneOf64Ranks_IsNamed) {
  const auto report = run(world_with({"crash rank=41 at=allreduce#2"}, 64));
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(allreduce #2 on group "world": rank 41 crashed and will never come)");
  EXPECT_EQ(report.rank_lines[41].state, RankOutcome::crashed);
}

TEST(Crash, RunsNeitherDestructorsNorCatches) {
  int destroyed = 0, caught = 0;
  struct Counts {
    int& count;
    ~Counts() { ++count; }
  };
  const auto body = [&](RankContext& ctx) {
    const Counts counts{destroyed};
    try {
      train(ctx);
    } catch (...) {
      ++caught;
      throw;
    }
  };
  WorldOptions options = world_with({"crash rank=3 at=allreduce#12"});
  options.explain_failures = false;
  EXPECT_EQ(World(options).run(body).verdict, Verdict::deadlock);
  EXPECT_EQ(destroyed, 3);
  EXPECT_EQ(caught, 3);
}

// A program that handles the loss is correct.
TEST(Crash, ThatTheOthersSurvive_IsOk) {
  const auto body = [](RankContext& ctx) {
    try {
      train(ctx);
    } catch (const TimeoutError& error) {
      EXPECT_EQ(error.ranks(), std::vector<int>{3});
    }
  };
  const auto report = run({"crash rank=3 at=allreduce#12"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.rank_lines[3].state, RankOutcome::crashed);
  EXPECT_EQ(report.rank_lines[0].state, RankOutcome::returned);
}

TEST(Crash, Disconnect_FailsThePeersAtOnce) {
  VirtualTime known{};
  const auto body = [&](RankContext& ctx) {
    try {
      train(ctx);
    } catch (const CommError& error) {
      known = ctx.now();
      EXPECT_EQ(error.ranks(), std::vector<int>{3});
      EXPECT_THROW(ctx.group().barrier()->wait(), CommError);
    }
  };
  const auto report = run({"crash rank=3 at=allreduce#12 peers=disconnect"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(known, report.faults[0].fired[0].at);
  EXPECT_EQ(report.end_time, known + std::chrono::microseconds(5));  // a call after a failed one costs time
}

// Rank 2 is in an injected pause in front of its call when rank 3 crashes.
TEST(Crash, Disconnect_FailsAPeerThatPauses) {
  VirtualTime known{};
  const auto report = run({"crash rank=3 at=allreduce#12 peers=disconnect", "pause rank=2 at=allreduce#12 for=5ms"},
                          [&](RankContext& ctx) {
                            try {
                              train(ctx);
                            } catch (const CommError&) {
                              if (ctx.rank() == 2) known = ctx.now();
                            }
                          });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_GE(known, report.faults[0].fired[0].at + std::chrono::milliseconds(4));
  EXPECT_LE(known, report.faults[0].fired[0].at + std::chrono::milliseconds(6));
}

TEST(Crash, Disconnect_Uncaught_IsARankThatFailed) {
  const auto report = run({"crash rank=3 at=allreduce#12 peers=disconnect"});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_NE(report.headline.find(R"(allreduce #12 on group "world" failed: rank 3 closed the connection)"),
            std::string::npos)
      << report.headline;
}

// The destructor's call fails, too.
TEST(Crash, DisconnectWithADestructorThatCalls_NamesTheFirstCallThatFailed) {
  struct Farewell {
    RankContext& ctx;
    ~Farewell() noexcept(false) { ctx.group().barrier()->wait(); }
  };
  const auto report = run({"crash rank=2 call=allreduce#1 peers=disconnect"}, [](RankContext& ctx) {
    const Farewell farewell{ctx};
    ctx.group().allreduce(at::ones({3}))->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_EQ(report.headline.find("rank 0: allreduce #1 on group \"world\" failed: rank 2 closed the connection"), 0u)
      << report.headline;
}

// The crash comes in the middle of a sleep, without a call.
TEST(Crash, AfterAVirtualTime_StrikesWhereverTheRankIs) {
  const auto body = [](RankContext& ctx) {
    exec::this_rank::sleep_for(std::chrono::milliseconds(5));
    ctx.group().barrier()->wait();
  };
  const auto report = run({"crash rank=1 after=2ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(barrier #1 on group "world": rank 1 crashed and will never come)");
  EXPECT_EQ(fired(report), "rank 1");
  EXPECT_EQ(report.faults[0].fired[0].at, VirtualTime(std::chrono::milliseconds(2)));
}

// The crash withdraws the rank's earlier calls, so the other ranks miss the rank in these calls.
TEST(Crash, AfterAVirtualTime_WithdrawsItsCalls) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 0) exec::this_rank::sleep_for(std::chrono::milliseconds(5));
    ctx.group().barrier()->wait();
  };
  const auto report = run({"crash rank=1 after=2ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(barrier #1 on group "world": rank 1 crashed and will never come)");
}

// All ranks had called, and the data was in flight. The transfer completes for no rank.
TEST(Crash, AmidATransfer_LeavesItUnderWay) {
  const auto body = [](RankContext& ctx) {
    auto value = at::full({1 << 20}, 1.0);
    ctx.group().allreduce(value)->wait();
  };
  const auto plain = run(std::vector<std::string>{}, body);
  EXPECT_GT(plain.end_time, VirtualTime(std::chrono::microseconds(50)));
  const auto report = run({"crash rank=1 after=50us"}, body);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_TRUE(report.headline.starts_with("rank 1 crashed; ")) << report.headline;
  EXPECT_NE(report.headline.find(R"(allreduce #1 on group "world")"), std::string::npos) << report.headline;
  const auto broken = run({"crash rank=1 after=50us peers=disconnect"}, [](RankContext& ctx) {
    auto value = at::full({1 << 20}, 1.0);
    try {
      ctx.group().allreduce(value)->wait();
    } catch (const CommError& error) {
      EXPECT_EQ(error.ranks(), std::vector<int>{1});
      EXPECT_EQ(ctx.now(), VirtualTime(std::chrono::microseconds(50)));
      return;
    }
    ctx.expect(false, "the connection breaks");
  });
  EXPECT_EQ(broken.verdict, Verdict::ok) << broken.headline;
}

// The crash also ends the rank's threads: one that waits, and one that could have run.
TEST(Crash, WithThreads_EndsThemToo) {
  bool ran_after = false;
  const auto body = [&](RankContext& ctx) {
    std::mutex mutex;
    std::condition_variable never;
    std::thread waits, sleeps;
    if (ctx.rank() == 1) {
      waits = std::thread([&] {
        std::unique_lock lock(mutex);
        never.wait(lock);
      });
      sleeps = std::thread([&] {
        exec::this_rank::sleep_for(std::chrono::milliseconds(1));
        ran_after = true;
      });
      exec::this_rank::yield();
    }
    ctx.group().barrier()->wait();
  };
  const auto report = run({"crash rank=1 at=barrier#1"}, body);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(barrier #1 on group "world": rank 1 crashed and will never come)");
  EXPECT_FALSE(ran_after);
}

TEST(Crash, OfAReceiver_IsMissedByTheSender) {
  const auto body = [](RankContext& ctx) {
    auto value = at::full({1}, 1.0);
    if (ctx.rank() == 0) ctx.group().send(value, 1)->wait();
    if (ctx.rank() == 1) ctx.group().recv(value, 0)->wait();
  };
  const auto report = run({"crash rank=1 call=recv#1"}, body);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_TRUE(report.headline.starts_with(R"(send #1 to rank 1 on group "world": rank 1 crashed and will never come)"))
      << report.headline;
}

TEST(Crash, OfEveryRank_EndsTheWorld) {
  const auto report = run({"crash rank=all at=allreduce#1"});
  EXPECT_EQ(report.verdict, Verdict::crashed);
  EXPECT_EQ(report.headline, "all ranks crashed");
  EXPECT_EQ(report.faults[0].times, 4u);
  for (const auto& line : report.rank_lines) EXPECT_EQ(line.state, RankOutcome::crashed);
}

}  // namespace
}  // namespace rehearse::test
