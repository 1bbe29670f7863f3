// SPDX-License-Identifier: BSD-3-Clause
// Contract: after all ranks have ended, the world still waits for a restart with on=fault#N, as long as fault N may
// fire.
#include <chrono>
#include <string>

#include "surviving.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

// All ranks returned long before, and the world waits for the fault that triggers the restart.
TEST(RestartOnFault, OnAFaultThatIsYetToCome_KeepsTheWorldAlive) {
  int starts = 0;
  const auto body = [&](RankContext& ctx) { starts += ctx.rank() == 1 ? 1 : 0; };
  const auto report =
      run({"restart rank=1 on=fault#2 after=3ms", "heal on=fault#3 after=2ms", "partition rank=0 after=5ms"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(starts, 4);  // run() runs the body twice
  EXPECT_EQ(report.faults[0].fired.at(0).at, VirtualTime(milliseconds(10)));
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(10)));
}

TEST(RestartOnFault, OnARestart_KeepsTheWorldAlive) {
  const auto report = run({"restart rank=1 after=5ms", "restart rank=2 on=fault#1 after=1ms"}, [](RankContext&) {});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(6)));
}

// No rank is left to crash, so the world must not wait for the time of the crash.
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
