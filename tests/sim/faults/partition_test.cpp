// SPDX-License-Identifier: BSD-3-Clause
// Contract: transfers that begin across a cut do not arrive while the cut lasts. All other transfers arrive. Held
// transfers move when the cut ends. The report names the cut.
#include <chrono>
#include <string>

#include <ATen/ops/ones.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

bool tells(const Report& report, const std::string& text) { return report.headline.find(text) != std::string::npos; }

void broadcasts(RankContext& ctx) {
  for (int step = 0; step < 3; ++step) {
    auto value = at::full({2}, static_cast<double>(ctx.rank()));
    ctx.group().broadcast(value)->wait();
    ctx.expect(value[0].item<double>() == 0, "the root's value came");
  }
}

TEST(Partition, WithoutAnEnd_IsADeadlockThatNamesTheCut) {
  const auto report = run({"partition rank=0-1 at=allreduce#3"});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_TRUE(report.headline.starts_with("the network is cut between ranks 0-1 and ranks 2-3 since 60.002 us; "))
      << report.headline;
  EXPECT_TRUE(tells(report, "allreduce #3 on group \"world\"")) << report.headline;
  EXPECT_EQ(report.faults[0].times, 1u);
  for (const auto& line : report.rank_lines) EXPECT_EQ(line.last, R"(allreduce #2 on group "world")");
}

TEST(Partition, ThatEnds_HoldsWhatCrossesItSoLong) {
  const auto plain = run(std::vector<std::string>{});
  const auto report = run({"partition rank=0-1 at=allreduce#3 for=5ms"});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, plain.end_time + milliseconds(5));
}

TEST(Partition, LongerThanTheTimeout_IsATimeoutThatNamesTheCut) {
  const auto report = run({"partition rank=3 from=0 at=allreduce#3 for=40min"});
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_TRUE(report.headline.starts_with("the network is cut between rank 3 and rank 0 since 60.002 us; "))
      << report.headline;
}

TEST(Partition, IsSurvivedByAProgramThatHandlesTheTimeout) {
  const auto body = [](RankContext& ctx) {
    auto value = at::ones({2});
    try {
      ctx.group().allreduce(value)->wait();
      ctx.expect(false, "the network is cut");
    } catch (const TimeoutError&) {
    }
    EXPECT_EQ(value[0].item<double>(), 1);
  };
  const auto report = run({"partition rank=0 at=allreduce#1 from=2"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Partition, DoesNotTouchGroupsOnOneSide) {
  const auto body = [](RankContext& ctx) {
    const auto left = ctx.new_group({0, 1}, "left");
    const auto right = ctx.new_group({2, 3}, "right");
    ctx.group().barrier()->wait();
    auto value = at::ones({2});
    (ctx.rank() < 2 ? left : right).allreduce(value)->wait();
    EXPECT_EQ(value[0].item<double>(), 2);
  };
  const auto plain = run(std::vector<std::string>{}, body);
  const auto report = run({"partition rank=0-1 call=allreduce#1"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, plain.end_time);
}

TEST(Partition, OneWay_StopsWhatGoesThatWayOnly) {
  EXPECT_EQ(run({"partition rank=0 way=in at=broadcast#2"}, broadcasts).verdict, Verdict::ok);
  const auto out = run({"partition rank=0 way=out at=broadcast#2"}, broadcasts);
  EXPECT_EQ(out.verdict, Verdict::deadlock);
  EXPECT_TRUE(out.headline.starts_with("the network is cut from rank 0 to ranks 1-3 since ")) << out.headline;
  const auto in = run({"partition rank=1-3 way=in at=broadcast#2"}, broadcasts);
  EXPECT_EQ(in.verdict, Verdict::deadlock);
  EXPECT_TRUE(in.headline.starts_with("the network is cut from rank 0 to ranks 1-3 since ")) << in.headline;
  // An all-reduce needs both directions.
  EXPECT_EQ(run({"partition rank=0 way=in at=allreduce#2"}).verdict, Verdict::deadlock);
}

TEST(Partition, OfSendsAndReceives_GoesByTheirEnds) {
  const auto body = [](RankContext& ctx) {
    auto value = at::full({1}, static_cast<double>(ctx.rank()));
    std::vector<at::Tensor> values{value};
    if (ctx.rank() == 1) ctx.group().send(value, 0)->wait();
    if (ctx.rank() == 2) ctx.group().send(value, 3)->wait();
    if (ctx.rank() == 0) ctx.group()->recvAnysource(values, 0)->wait();
    if (ctx.rank() == 3) ctx.group().recv(value, 2)->wait();
    EXPECT_EQ(value.item<double>(), ctx.rank() == 0 ? 1 : ctx.rank() == 3 ? 2 : ctx.rank());
  };
  const auto plain = run(std::vector<std::string>{}, body);
  EXPECT_EQ(run({"partition rank=1 from=2-3 call=send#1"}, body).end_time, plain.end_time);
  EXPECT_EQ(run({"partition rank=1 from=0 way=in call=send#1"}, body).end_time, plain.end_time);
  const auto held = run({"partition rank=1 from=0 way=out call=send#1 for=3ms"}, body);
  EXPECT_EQ(held.verdict, Verdict::ok) << held.headline;
  EXPECT_EQ(held.end_time, plain.end_time + milliseconds(3));
}

// The first all-reduce is in flight when the cut begins, so it still arrives.
TEST(Partition, AtATime_HealedAtATime) {
  const auto plain = run(std::vector<std::string>{});
  const auto report = run({"partition rank=0 after=0s", "heal after=3ms"});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time - milliseconds(3), VirtualTime(plain.end_time.time_since_epoch() / kSteps * (kSteps - 1)));
  ASSERT_EQ(report.faults[1].times, 1u);
  EXPECT_EQ(report.faults[1].fired[0].rank, -1);
  EXPECT_EQ(report.faults[1].fired[0].at, VirtualTime(milliseconds(3)));
}

TEST(Heal, OfACall_EndsAllPartitions) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 3) {
      exec::this_rank::sleep_for(milliseconds(2));
      auto value = at::ones({1});
      std::vector<at::Tensor> values{value};
      ctx.group()->send(values, 2, 7)->wait();
    } else if (ctx.rank() == 2) {
      auto value = at::ones({1});
      ctx.group().recv(value, 3, 7)->wait();
    }
    train(ctx);
  };
  const auto report =
      run({"partition rank=0 after=0s", "partition rank=1 from=2 after=0s", "heal rank=3 call=send#1"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(fired(report, 2), R"(rank 3 in send #1 on group "world")");
}

TEST(Heal, OfNothing_DidNotFire) {
  const auto report = run({"heal after=10us"});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline, "heal after=10us: nothing was cut at 10 us");
}

TEST(Partition, FromTheStore_HoldsItsCalls) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 3) exec::this_rank::sleep_for(milliseconds(1));
    ctx.store()->set("key " + std::to_string(ctx.rank()), "here");
    EXPECT_EQ(ctx.store()->get_to_str("key 3"), "here");
  };
  const auto report = run({"partition rank=3 after=0s for=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(5)));
}

TEST(Partition, FromTheStore_TimesOutByTheCallsOwnTimeout) {
  const auto report = run(world_with({"partition rank=2 from=0 call=wait#1 for=20s"}), [](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("key", "value");
    ctx.group().barrier()->wait();
    if (ctx.rank() != 2) return;
    const auto before = ctx.now();
    EXPECT_THROW(ctx.store()->wait({"key"}, std::chrono::milliseconds(500)), c10::DistStoreError);
    EXPECT_EQ(ctx.now() - before, std::chrono::milliseconds(500));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Partition, FromTheStore_TimesOut) {
  const auto body = [](RankContext& ctx) {
    exec::this_rank::sleep_for(milliseconds(1));
    if (ctx.rank() != 3) return;
    ctx.store()->setTimeout(milliseconds(20));
    EXPECT_THROW(ctx.store()->set("key", "value"), c10::DistStoreError);
    EXPECT_EQ(ctx.now(), VirtualTime(milliseconds(21)));
  };
  EXPECT_EQ(run({"partition rank=3 after=0s"}, body).verdict, Verdict::ok);
  const auto uncaught = run({"partition rank=3 after=0s"}, [](RankContext& ctx) {
    exec::this_rank::sleep_for(milliseconds(1));
    ctx.store()->set("key", "value");
  });
  EXPECT_EQ(uncaught.verdict, Verdict::deadlock);
  EXPECT_TRUE(uncaught.headline.starts_with("the network is cut between rank 3 and ranks 0-2 since the start; "))
      << uncaught.headline;
  EXPECT_TRUE(tells(uncaught, "rank 3 is cut off from the store of rank 0")) << uncaught.headline;
}

}  // namespace
}  // namespace rehearse::test
