// SPDX-License-Identifier: BSD-3-Clause
// Contract: a world whose ranks have all ended waits for a restart that is on another fault, as long as that may fire.
#include <chrono>
#include <string>

#include "surviving.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

// All have returned long before, and the world waits for what brings the restart about.
TEST(RestartOnFault, OnAFaultThatIsYetToCome_KeepsTheWorldAlive) {
  int lives = 0;
  const auto body = [&](RankContext& ctx) { lives += ctx.rank() == 1 ? 1 : 0; };
  const auto report =
      run({"restart rank=1 on=fault#2 after=3ms", "heal on=fault#3 after=2ms", "partition rank=0 after=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(lives, 4);  // run() runs it twice
  EXPECT_EQ(report.faults[0].fired.at(0).at, VirtualTime(milliseconds(10)));
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(10)));
}

TEST(RestartOnFault, OnARestart_KeepsTheWorldAlive) {
  const auto report = run({"restart rank=1 after=5ms", "restart rank=2 on=fault#1 after=1ms"}, [](RankContext&) {});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(6)));
}

// Nobody is left to crash: the world does not wait until it would have been time.
TEST(RestartOnFault, OnAFaultThatCannotFireAnyMore_IsNotWaitedFor) {
  const auto report = run({"crash rank=3 after=10ms", "restart rank=3 on=fault#1"}, [](RankContext&) {});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_LT(report.end_time, VirtualTime(milliseconds(10)));
}

TEST(RestartOnFault, OnAFaultThatFindsNothingToDo_EndsTheWorldThen) {
  const auto report =
      run({"heal after=5ms optional=true", "restart rank=3 on=fault#1 optional=true"}, [](RankContext&) {});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(5)));
  EXPECT_EQ(report.faults[1].why_not, "fault#1 did not fire");
}

}  // namespace
}  // namespace rehearse::test
