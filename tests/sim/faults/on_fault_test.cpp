// SPDX-License-Identifier: BSD-3-Clause
// Contract: a fault with on=fault#N fires after fault N has fired, never before. Its `after` counts from the time when
// fault N fired.
#include <chrono>
#include <string>

#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string refusal(const std::vector<std::string>& faults) {
  try {
    World world(world_with(faults));
    return "taken";
  } catch (const FaultError& error) {
    return error.what();
  }
}

TEST(OnFault, OfACall_IsTheFirstThatFitsFromThenOn) {
  const auto report = run({"pause rank=1 at=allreduce#7 for=1ms", "pause rank=2 at=allreduce on=fault#1 for=1ms"});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  // Rank 2 may have made its seventh call before rank 1 did.
  const auto second = fired(report, 1);
  EXPECT_TRUE(second == R"(rank 2 in allreduce #7 on group "world")" ||
              second == R"(rank 2 in allreduce #8 on group "world")")
      << second;
  EXPECT_GE(report.faults[1].fired[0].at, report.faults[0].fired[0].at);
}

TEST(OnFault, WithoutACall_HappensByItself) {
  const auto report = run({"crash rank=3 at=allreduce#12", "crash rank=2 on=fault#1 after=2ms"});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_TRUE(report.headline.starts_with(R"(allreduce #12 on group "world": ranks 2-3 crashed and will never come)"))
      << report.headline;
  EXPECT_EQ(report.faults[1].fired.at(0).at, report.faults[0].fired.at(0).at + milliseconds(2));
}

TEST(OnFault, ChainsInAnyOrder) {
  const auto body = [](RankContext& ctx) {
    for (int step = 0; step < 3; ++step) {
      exec::this_rank::sleep_for(milliseconds(1));
      ctx.group().barrier()->wait();
    }
  };
  const auto report =
      run({"heal on=fault#2 after=500us", "partition rank=0 on=fault#3", "pause rank=3 after=1ms for=10us"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[2].fired.at(0).at, VirtualTime(milliseconds(1)));
  EXPECT_EQ(report.faults[1].fired.at(0).at, VirtualTime(milliseconds(1)));
  EXPECT_EQ(report.faults[0].fired.at(0).at, VirtualTime(microseconds(1500)));
}

TEST(OnFault, ThatDidNotFire_DoesNotFire) {
  const auto report = run({"crash rank=3 at=allreduce#21 optional=true", "hang rank=2 on=fault#1"});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline, "hang rank=2 on=fault#1: fault#1 did not fire");
}

TEST(OnFault, ThatIsNotThere_IsRefused) {
  EXPECT_EQ(refusal({"hang rank=2 on=fault#2"}), R"(fault "hang rank=2 on=fault#2": on is fault#2; there is 1 in all)");
  EXPECT_EQ(refusal({"hang rank=2 on=fault#1"}), R"(fault "hang rank=2 on=fault#1" is on itself)");
}

}  // namespace
}  // namespace rehearse::test
