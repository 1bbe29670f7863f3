// SPDX-License-Identifier: BSD-3-Clause
// Contract: if an injected exit() has ended a rank, the rank restarts like a crashed rank. If no restart follows, the
// exit counts as a failure of the rank, unless peers=disconnect lets the other ranks survive it.
#include <chrono>
#include <string>

#include "surviving.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

TEST(RestartAfterExit, IsAsOfACrash) {
  const auto report = run({"exit rank=3 at=allreduce#12 status=3 peers=disconnect restart=5ms"}, train_and_survive);
  expect_back_after_5_ms(report);
}

TEST(RestartAfterExit, ByAFaultOfItsOwn) {
  for (const auto* const restart :
       {"restart rank=3 after=20ms", "restart rank=3 on=fault#1 after=3ms", "restart rank=3 on=fault#1"}) {
    const auto report = run({"exit rank=3 at=allreduce#12 peers=disconnect", restart}, train_and_survive);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_EQ(report.faults[1].times, 1u) << report.faults[1].why_not;
  }
}

// The restart depends on a fault that has not fired yet.
TEST(RestartAfterExit, OnALaterFault) {
  const auto report = run({"exit rank=3 at=allreduce#12 peers=disconnect", "partition rank=0 after=10ms for=1us",
                           "restart rank=3 on=fault#2 after=3ms"},
                          train_and_survive);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[2].fired.at(0).at, VirtualTime(milliseconds(13)));
}

// The other ranks notice the exit as they would notice a crash. The report says that it was an exit.
TEST(RestartAfterExit, WhoseTimeDoesNotCome) {
  const auto report = run({"exit rank=3 at=allreduce#12 status=3 peers=disconnect restart=5ms"});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_NE(report.headline.find("rank 3 closed the connection"), std::string::npos) << report.headline;
  EXPECT_EQ(report.rank_lines[3].state, RankOutcome::crashed);
  EXPECT_EQ(report.rank_lines[3].doing, R"(exit(3) in allreduce #12 on group "world")");
  EXPECT_FALSE(report.faults[0].fired.at(0).began_again);
}

TEST(RestartAfterExit, NeverAndPeersThatDisconnect_LetsTheOthersSurvive) {
  int survived = 0;
  const auto body = [&](RankContext& ctx) {
    try {
      train(ctx);
    } catch (const CommError& error) {
      EXPECT_EQ(error.ranks(), std::vector<int>{3});
      ++survived;
    }
  };
  const auto report = run({"exit rank=3 at=allreduce#12 status=3 peers=disconnect"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(survived, 2 * 3);  // the run, and its replay
  EXPECT_EQ(report.rank_lines[3].doing, R"(exit(3) in allreduce #12 on group "world")");
}

TEST(RestartAfterExit, OfAnotherRank_IsTheRanksFailure) {
  const auto report = run({"exit rank=3 at=allreduce#12", "restart rank=2 after=20ms optional=true"});
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_TRUE(report.headline.starts_with("rank 3: exit(1) was called")) << report.headline;
}

TEST(RestartAfterExit, Twice) {
  int most = 0;
  const auto body = [&](RankContext& ctx) {
    if (ctx.rank() != 2) return;
    most = ctx.incarnation();
    ctx.new_local_group({2}, "alone" + std::to_string(most)).barrier()->wait();
  };
  const auto report = run({"exit rank=2 call=barrier times=2 restart=1ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace rehearse::test
