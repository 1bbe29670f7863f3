// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report does not depend on the order of arrival. One golden file holds for all seeds.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world_report.h"
#include "wrong_programs.h"

namespace rehearse::golden {
namespace {

using testing::ElementsAre;
using testing::StartsWith;
using namespace wrong_programs;

// Events of the same time are in the order of the schedule, so this function sorts them.
Report of_any_schedule(const World::Body& body, int ranks, std::uint64_t seed) {
  auto report = run_world(body, ranks, seed);
  report.seed = 0;
  std::sort(report.last_events.begin(), report.last_events.end());
  return report;
}

TEST(AnySchedule, WrongRoot_NamesBothRoots) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto report = of_any_schedule(broadcasts_from_another_root, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(report.headline,
              "rank 2 called broadcast(root=1, float32[4], cpu) while ranks 0-1,3 called broadcast(root=0, float32[4], "
              "cpu) as #1 of group \"world\": root 1, not 0");
    expect_golden_report(report, "broadcasts_from_another_root");
  }
}

TEST(AnySchedule, UnevenAllToAll_NamesTheEdge) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto report = of_any_schedule(expects_more_than_is_sent, 2, seed);
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(
        report.headline,
        "ranks 0 and 1 disagree at #1 of group \"world\": rank 1 sends 2 elements to rank 0, which expects 3; rank 0 "
        "called alltoall_base(float32[4], cpu, send [2, 2], receive [2, 3]), rank 1 called alltoall_base(float32[4], "
        "cpu, send [2, 2], receive [2, 2])");
    expect_golden_report(report, "expects_more_than_is_sent");
  }
}

// Three kinds of waits in one cycle. Rank 3 is not in the cycle, but waits for ranks in it.
TEST(AnySchedule, CycleOfTwoGroupsAndAReceive_HasEachWait) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto report = of_any_schedule(waits_in_two_groups_and_a_receive, 4, seed);
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline,
              "ranks 0 -> 1 -> 2 -> 0 wait for each other: rank 0 in allreduce #1 on group \"tensor_parallel\", rank 1 "
              "in broadcast #1 on group \"data_parallel\", rank 2 in recv #1 from rank 0 on group \"world\"");
    EXPECT_THAT(report.wait_cycle,
                ElementsAre(StartsWith("rank 0 waits for rank 1 (allreduce #1 on group \"tensor_parallel\") at "),
                            StartsWith("rank 1 waits for rank 2 (broadcast #1 on group \"data_parallel\") at "),
                            StartsWith("rank 2 waits for rank 0 (recv #1 from rank 0 on group \"world\") at ")));
    expect_golden_report(report, "waits_in_two_groups_and_a_receive");
  }
}

}  // namespace
}  // namespace rehearse::golden
