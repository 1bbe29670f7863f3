// SPDX-License-Identifier: BSD-3-Clause
// Contract: each fault does what its name says, where its trigger says, and the report names rank and call. If a fault
// did not fire, the verdict says so, unless the fault is optional. Each run replays.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"
#include "report/writers/culprits.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

const sim::NetworkModel kNoTime{.latency = {}, .bytes_per_second = 1e18};

bool says(const Report& report, const std::string& text) { return report.headline.find(text) != std::string::npos; }

TEST(Fault, Exit_IsTheRanksFailure) {
  const auto report = run({"exit rank=2 at=allreduce#5 status=3"});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_TRUE(says(report, R"(rank 2: exit(3) was called in allreduce #5 on group "world": an injected exit)"))
      << report.headline;
  EXPECT_EQ(fired(report), R"(rank 2 in allreduce #5 on group "world")");
}

TEST(Fault, Hang_IsADeadlockOfThatRank) {
  const auto report = run({"hang rank=1 at=allreduce#7"});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_TRUE(says(report, R"(rank 1 waits forever in an injected hang before allreduce #7 on group "world")"))
      << report.headline;
  EXPECT_EQ(report.rank_lines[1].state, RankOutcome::blocked);
}

TEST(Fault, Pause_MakesTheOthersWaitSoLong) {
  const auto plain = run(std::vector<std::string>{});
  const auto report = run({"pause rank=1 at=allreduce#7 for=5ms"});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.end_time, plain.end_time + milliseconds(5));
}

TEST(Fault, Pause_LongerThanTheTimeout_IsATimeoutOfThatRank) {
  const auto report = run({"pause rank=1 at=allreduce#7 for=31min"});
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_TRUE(says(report, "rank 1 was still in an injected pause")) << report.headline;
}

TEST(Fault, Slow_StretchesCommunicationAndComputation) {
  auto options = world_with({"slow rank=1 factor=3"});
  auto plain = world_with({});
  EXPECT_EQ(run(options).end_time.time_since_epoch(), 3 * run(plain).end_time.time_since_epoch());
  for (auto* const each : {&options, &plain}) {
    each->compute.per_operator = std::chrono::microseconds(10);
    each->network = kNoTime;
  }
  const auto report = run(options);
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.end_time.time_since_epoch(), 3 * run(plain).end_time.time_since_epoch());
  EXPECT_EQ(fired(report), "rank 1");
}

TEST(Fault, Delay_MovesTheDataLater) {
  const auto plain = run(std::vector<std::string>{});
  const auto report = run({"delay rank=0 at=allreduce#3 for=2ms"});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.end_time, plain.end_time + milliseconds(2));
}

TEST(Fault, Delay_LongerThanTheTimeout_IsATimeoutOfThatRank) {
  const auto report = run({"delay rank=0 at=allreduce#3 for=31min"});
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_TRUE(says(report,
                   "the data of rank 0 in allreduce #3 on group \"world\" moved later (delay rank=0 "
                   "at=allreduce#3 for=31min); rank "))
      << report.headline;
  EXPECT_EQ(sim::culprits_of(report), std::vector<int>{0});
}

// Ranks 1 and 2 send to rank 0, which receives from rank 1 first.
void gather_by_hand(RankContext& ctx) {
  auto value = at::ones({4});
  if (ctx.rank() > 0) return void(ctx.group().send(value, 0)->wait());
  for (int source = 1; source < ctx.size(); ++source) ctx.group().recv(value, source)->wait();
}

TEST(Fault, DelayOfASend_LongerThanTheTimeout_IsATimeoutOfThatRank) {
  const auto report = run(world_with({"delay rank=1 call=send#1 for=31min"}, 3), gather_by_hand);
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_TRUE(says(report,
                   "the data of rank 1 in send #1 on group \"world\" moved later (delay rank=1 call=send#1 "
                   "for=31min); "))
      << report.headline;
  EXPECT_EQ(sim::culprits_of(report), std::vector<int>{1});
}

// The waits of several ranks end at the same moment, in any order.
TEST(Fault, DelayOfOneOfManyMessages_IsNamedWhicheverWaitEndsFirst) {
  const auto two_sends = [](RankContext& ctx) {
    auto x = at::ones({8});
    if (ctx.rank() > 0) return void(ctx.group().recv(x, 0)->wait());
    ctx.group().send(x, 2)->wait();
    ctx.group().send(x, 1)->wait();
  };
  const auto chain = [](RankContext& ctx) {
    auto x = at::ones({8});
    for (int tag = 0; tag < 3; ++tag) {
      if (ctx.rank() > 0) ctx.group().recv(x, ctx.rank() - 1, tag)->wait();
      if (ctx.rank() + 1 < ctx.size()) ctx.group().send(x, ctx.rank() + 1, tag)->wait();
    }
  };
  const auto ring = [](RankContext& ctx) {
    auto x = at::ones({8}), y = at::zeros({8});
    for (int tag = 0; tag < 4; ++tag) {
      const auto sent = ctx.group().send(x, (ctx.rank() + 1) % ctx.size(), tag);
      ctx.group().recv(y, (ctx.rank() + ctx.size() - 1) % ctx.size(), tag)->wait();
      sent->wait();
      std::swap(x, y);
    }
  };
  const struct {
    const char* fault;
    int rank;
    std::function<void(RankContext&)> body;
  } cases[] = {{"delay rank=0 call=send#2 for=31min", 0, two_sends},
               {"delay rank=1 call=send#2 for=31min", 1, chain},
               {"delay rank=1 call=send#3 for=31min", 1, ring}};
  for (const auto& [fault, rank, body] : cases) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      auto options = world_with({fault}, 3);
      options.seed = seed;
      const auto report = run(options, body);
      EXPECT_EQ(report.verdict, Verdict::timeout) << seed << report.headline;
      EXPECT_TRUE(says(report, std::string("moved later (") + fault + "); ")) << seed << report.headline;
      EXPECT_EQ(sim::culprits_of(report), std::vector<int>{rank}) << fault << seed;
    }
  }
}

// Rank 0's wait for its transfer to the slow rank ends at the same moment as rank 2's wait for rank 0.
TEST(Fault, SlowTransfer_IsNotBlamedOnTheRankThatWaitedForIt) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto options = world_with({"slow rank=1 factor=1000000"}, 3);
    options.seed = seed;
    options.timeout = std::chrono::seconds(1);
    const auto report = run(options, [](RankContext& ctx) {
      auto x = at::ones({64});
      if (ctx.rank() > 0) return void(ctx.group().recv(x, 0)->wait());
      ctx.group().send(x, 1)->wait();
      ctx.group().send(x, 2)->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::timeout) << report.headline;
    EXPECT_FALSE(says(report, "has ended")) << seed << report.headline;
    EXPECT_TRUE(says(report, "the transfer takes longer")) << seed << report.headline;
  }
}

// Rank 2's send is right: rank 0 would have received it next.
TEST(Fault, SenderOfTheFirstMessage_IsBlamedAlone) {
  for (const auto* const what : {"crash", "hang"}) {
    const auto report = run(world_with({std::string(what) + " rank=1 call=send#1"}, 3), gather_by_hand);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_FALSE(says(report, "rank 2's send")) << report.headline;
    EXPECT_EQ(sim::culprits_of(report), std::vector<int>{1});
  }
}

TEST(Fault, DelayOfASend_MovesTheDataLater) {
  const auto body = [](RankContext& ctx) {
    auto value = at::full({1}, static_cast<double>(ctx.rank()));
    std::vector<at::Tensor> values{value};
    if (ctx.rank() == 0) ctx.group()->send(values, 1, 0)->wait();
    if (ctx.rank() == 1) ctx.group()->recv(values, 0, 0)->wait();
    if (ctx.rank() == 1) {
      EXPECT_EQ(value.item<double>(), 0);
    }
  };
  const auto plain = run(std::vector<std::string>{}, body);
  const auto report = run({"delay rank=0 call=send#1 for=2ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, plain.end_time + milliseconds(2));
  EXPECT_EQ(fired(report), R"(rank 0 in send #1 on group "world")");
}

// After the skipped call, the rank has always made one call fewer than the others, and it returns before their last
// call.
TEST(Fault, SkipCollective_IsFoundAtTheEnd) {
  const auto report = run({"skip_collective rank=2 at=allreduce#4"}, [](RankContext& ctx) {
    for (int step = 0; step < kSteps; ++step) {
      auto value = at::ones({4});
      ctx.group().allreduce(value)->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, R"(allreduce #20 on group "world": rank 2 has ended and will never come)");
  EXPECT_EQ(fired(report), R"(rank 2 in allreduce #4 on group "world")");
}

TEST(Fault, SkipCollective_LeavesSendsAlone) {
  const auto report = run(world_with({"skip_collective rank=0 call=#1"}, 2), [](RankContext& ctx) {
    auto value = at::ones({4});
    if (ctx.rank() == 0) ctx.group().send(value, 1)->wait();
    if (ctx.rank() == 1) ctx.group().recv(value, 0)->wait();
    ctx.group().allreduce(value)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired) << report.headline;
}

TEST(Fault, FailOp_WhoseErrorUnwindsThroughACall_BeginsTheHeadline) {
  struct Guard {
    Group group;
    ~Guard() noexcept(false) { group.barrier()->wait(); }
  };
  const auto report = run({"fail_op rank=1 at=allreduce#2"}, [](RankContext& ctx) {
    const Guard guard{ctx.group()};
    train(ctx);
  });
  EXPECT_TRUE(
      report.headline.starts_with("rank 1 was unwinding an exception, 'allreduce #2 on group \"world\" failed: "
                                  "an injected error"))
      << report.headline;
}

TEST(Fault, FailOp_ThrowsCommError) {
  const auto report = run({"fail_op rank=2 at=allreduce#4"});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_TRUE(says(report, R"(rank 2: allreduce #4 on group "world" failed: an injected error of the back end)"))
      << report.headline;
}

TEST(Fault, Corrupt_IsSeenByThatRankAlone) {
  for (const std::string with : {"nan", "bit"}) {
    int wrong = 0;
    const auto body = [&](RankContext& ctx) {
      auto value = at::ones({4});
      ctx.group().allreduce(value)->wait();
      const bool is_right = value[0].item<double>() == ctx.size();
      if (!is_right) {
        EXPECT_EQ(ctx.rank(), 1);
      }
      if (!is_right) {
        EXPECT_EQ(std::isnan(value[0].item<double>()), with == "nan");
      }
      EXPECT_EQ(value[1].item<double>(), ctx.size());
      wrong += is_right ? 0 : 1;
    };
    const auto report = run({"corrupt rank=1 at=allreduce#1 with=" + with}, body);
    EXPECT_EQ(report.verdict, Verdict::ok);
    EXPECT_EQ(wrong, 2) << "once in each of two runs";
  }
}

TEST(Trigger, CallCountsTheRanksCallsInEveryGroup) {
  const auto body = [](RankContext& ctx) {
    const auto other = ctx.new_group({0, 1, 2, 3}, "other");
    for (int step = 0; step < 3; ++step) {
      auto value = at::ones({4});
      ctx.group().allreduce(value)->wait();
      other.allreduce(value)->wait();
    }
  };
  EXPECT_EQ(fired(run({"fail_op rank=2 call=allreduce#4"}, body)), R"(rank 2 in allreduce #2 on group "other")");
  EXPECT_EQ(fired(run({"fail_op rank=2 at=#3 group=other"}, body)), R"(rank 2 in allreduce #3 on group "other")");
  EXPECT_EQ(fired(run({"fail_op rank=2 group=other"}, body)), R"(rank 2 in allreduce #1 on group "other")");
}

TEST(Trigger, LabelIsThatOfTheCall) {
  const auto body = [](RankContext& ctx) {
    for (const auto* const name : {"layer 0", "layer 1"}) {
      const auto label = ctx.label(name);
      auto value = at::ones({4});
      ctx.group().allreduce(value)->wait();
    }
  };
  EXPECT_EQ(fired(run({"hang rank=3 label=\"layer 1\""}, body)), R"(rank 3 in allreduce #2 on group "world")");
}

TEST(Trigger, AfterATime_IsTheFirstCallFromThenOn) {
  const auto body = [](RankContext& ctx) {
    for (int step = 0; step < 4; ++step) {
      exec::this_rank::sleep_for(milliseconds(1));
      ctx.group().barrier()->wait();
    }
  };
  auto options = world_with({"fail_op rank=0 after=2500us"});
  options.network = kNoTime;
  EXPECT_EQ(fired(run(options, body)), R"(rank 0 in barrier #3 on group "world")");
}

// The Oracle's seed decides whether the fault fires.
TEST(Trigger, ProbabilityIsDrawnThroughTheOracle) {
  int hit = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto options = world_with({"fail_op rank=0 at=allreduce#1 p=0.5"});
    options.seed = seed;
    const auto report = run(options);
    const bool fired = report.faults[0].times == 1;
    EXPECT_EQ(report.verdict, fired ? Verdict::rank_failed : Verdict::fault_not_fired);
    if (!fired) {
      EXPECT_EQ(report.faults[0].why_not, "drawn 1 time, and never taken");
    }
    hit += fired ? 1 : 0;
  }
  EXPECT_GT(hit, 8);
  EXPECT_LT(hit, 32);
}

TEST(Trigger, TimesBoundsIt) {
  const auto report = run({"pause rank=0,2 at=allreduce times=3 for=1ms"});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].times, 6u);
}

TEST(Ledger, FaultThatDidNotFire_IsAVerdict) {
  const auto report = run({"crash rank=3 at=allreduce#21"});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(exit_code(report.verdict), 7);
  EXPECT_EQ(report.headline, "crash rank=3 at=allreduce#21: no call fitted; rank 3 made 20 calls");
}

TEST(Ledger, OptionalFaultThatDidNotFire_IsOk) {
  const auto report = run({"crash rank=3 at=allreduce#21 optional=true", "crash rank=2 after=1h optional=true"});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].why_not, "no call fitted; rank 3 made 20 calls");
  EXPECT_NE(report.faults[1].why_not, "");
}

TEST(Ledger, FaultForRanksThatAreNotThere_IsRefused) {
  try {
    World world(world_with({"crash rank=4 at=allreduce#1"}));
    FAIL() << "it was taken";
  } catch (const FaultError& error) {
    EXPECT_STREQ(error.what(), R"(fault "crash rank=4 at=allreduce#1": rank is 4; the world has ranks 0 to 3)");
  }
}

TEST(Ledger, FaultsInARealRun_AreRefused) {
  auto options = world_with({"crash rank=0 at=allreduce#1"});
  options.mode = Mode::real;
  EXPECT_THROW(World{options}, FaultError);
}

}  // namespace
}  // namespace rehearse::test
