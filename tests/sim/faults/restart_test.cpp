// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank that has crashed or ended restarts with fresh state. It cannot use the groups of its previous
// incarnation, and new groups give right results.
#include <chrono>
#include <cstdlib>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/this_rank.h>

#include "surviving.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

TEST(RestartFault, NewGroupOfSurvivorsAndTheRestartedRank_Reduces) {
  const auto report = run({"crash rank=3 at=allreduce#12 peers=disconnect restart=5ms"}, train_and_survive);
  expect_back_after_5_ms(report);
}

TEST(RestartFault, Report_SaysWhenItBeganAgain) {
  const auto report = run({"crash rank=3 at=allreduce#2 peers=disconnect restart=5ms"}, train_and_survive);
  EXPECT_NE(sim::to_text(report, {.width = 1000})
                .find(R"(fired on rank 3 in allreduce #2 on group "world" at 30.001 us (began again at 5.03 ms))"),
            std::string::npos)
      << sim::to_text(report);
  const auto read = sim::report_from_json(sim::to_json(report));
  EXPECT_EQ(read.faults.at(0).fired.at(0).began_again, report.faults[0].fired[0].began_again);
}

TEST(RestartFault, PeersThatWait_FindOutByTheirTimeout) {
  const auto report = run({"crash rank=3 at=allreduce#12 restart=5ms"}, train_and_survive);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_GE(report.end_time, report.faults[0].fired[0].at + std::chrono::minutes(30));
}

TEST(RestartFault, EachRank_EachSchedule) {
  for (int rank = 0; rank < 4; ++rank) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      auto options =
          world_with({"crash rank=" + std::to_string(rank) + " at=allreduce#7 peers=disconnect restart=1ms"});
      options.seed = seed;
      const auto body = [](RankContext& ctx) {
        try {
          if (ctx.incarnation() == 0) train(ctx);
        } catch (const CommError&) {
        }
        reduce_anew(ctx);
      };
      EXPECT_EQ(run(options, body).verdict, Verdict::ok);
    }
  }
}

// Generator, grad mode, rand(), ctx.local() and labels are those of a new process.
TEST(RestartFault, BeginsWithFreshState) {
  std::vector<std::string> starts;
  const auto body = [&](RankContext& ctx) {
    if (ctx.rank() == 1) {
      starts.push_back(std::to_string(ctx.local<int>()) + (at::GradMode::is_enabled() ? " grad " : " no grad ") +
                       std::to_string(std::rand()) + " " + std::to_string(at::rand({1}).item<float>()));
      ctx.local<int>() = 7;
    }
    const auto label = ctx.label(ctx.incarnation() == 0 ? "first" : "second");
    const at::NoGradGuard no_grad;
    if (ctx.rank() == 1 && ctx.incarnation() == 0) ctx.group().barrier()->wait();
  };
  auto options = world_with({"crash rank=1 at=barrier#1 restart=1ms"});
  options.explain_failures = false;
  EXPECT_EQ(World(options).run(body).verdict, Verdict::ok);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0], starts[1]);
  EXPECT_TRUE(starts[0].starts_with("0 grad "));
}

TEST(RestartFault, GroupsOfTheFormerIncarnation_AreGone) {
  const auto body = [](RankContext& ctx) {
    const auto pair = ctx.new_group({1, 3}, "pair");
    if (ctx.incarnation() == 0) return train(ctx);
    EXPECT_THROW(pair.barrier()->wait(), CommError);
    ctx.group().barrier()->wait();
  };
  const auto report = run({"crash rank=3 at=allreduce#12 restart=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_NE(report.headline.find("rank 3 has begun again and is no longer a member of this group"), std::string::npos)
      << report.headline;
}

// new_group() also lets the restarted rank in. It matches the n-th calls of all ranks, and a restarted rank counts from
// one again. Here all ranks make their first call after the restart.
TEST(RestartFault, NewGroupByAllRanks_TakesTheRestartedRankIn) {
  const auto body = [](RankContext& ctx) {
    try {
      if (ctx.incarnation() == 0) train(ctx);
    } catch (const CommError&) {
    }
    if (ctx.rank() == 3) ctx.store()->set("back", "3");
    ctx.store()->wait({"back"});
    auto value = at::full({1}, 1.0);
    ctx.new_group({0, 1, 2, 3}, "again").allreduce(value)->wait();
    ctx.expect(value.item<double>() == 4, "the sum is 4");
  };
  const auto report = run({"crash rank=3 at=allreduce#12 peers=disconnect restart=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("the sum is 4"), 4u);
}

TEST(RestartFault, OfEveryRank) {
  const auto body = [](RankContext& ctx) {
    if (ctx.incarnation() == 0) train(ctx);
    reduce_anew(ctx);
  };
  const auto report = run({"crash rank=all at=allreduce#1 restart=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[0].times, 4u);
}

TEST(RestartFault, TwiceOfOneRank) {
  int most = 0;
  const auto body = [&](RankContext& ctx) {
    if (ctx.rank() != 2) return;
    most = ctx.incarnation();
    ctx.new_local_group({2}, "alone" + std::to_string(most)).barrier()->wait();
  };
  const auto report = run({"crash rank=2 call=barrier times=2 restart=1ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(most, 2);
  ASSERT_EQ(report.faults[0].fired.size(), 2u);
  EXPECT_EQ(report.faults[0].fired[1].began_again, report.faults[0].fired[1].at + milliseconds(1));
}

TEST(RestartFault, OfARankThatHasReturned) {
  int starts = 0;
  const auto report = run({"restart rank=1 after=5ms"}, [&](RankContext& ctx) { starts += ctx.rank() == 1 ? 1 : 0; });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(starts, 4);  // run() runs the body twice
  EXPECT_EQ(fired(report), "rank 1");
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(5)));
}

TEST(RestartFault, OfACrashedRankAtATime) {
  const auto report =
      run({"crash rank=3 at=allreduce#12 peers=disconnect", "restart rank=3 after=20ms"}, train_and_survive);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[1].fired[0].at, VirtualTime(milliseconds(20)));
}

TEST(RestartFault, OnAnotherFault_IsSoMuchLater) {
  const auto report =
      run({"crash rank=3 at=allreduce#12 peers=disconnect", "restart rank=3 on=fault#1 after=3ms"}, train_and_survive);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[1].fired.at(0).at, report.faults[0].fired.at(0).at + milliseconds(3));
}

TEST(RestartFault, OfARankWhoseDataIsUnderWay) {
  const auto body = [](RankContext& ctx) {
    try {
      while (ctx.incarnation() == 0) train(ctx);
    } catch (const CommError&) {
    }
    reduce_anew(ctx);
  };
  const auto report = run({"crash rank=3 after=1ms peers=disconnect restart=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[0].fired.at(0).began_again, VirtualTime(milliseconds(6)));
}

TEST(RestartFault, OfARunningRank_DoesNotFire) {
  const auto body = [](RankContext&) { exec::this_rank::sleep_for(milliseconds(5)); };
  const auto report = run({"restart rank=1 after=2ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.faults[0].why_not, "the rank was still running");
}

}  // namespace
}  // namespace rehearse::test
