// SPDX-License-Identifier: BSD-3-Clause
// Contract: a fault that may happen at a group's call may also happen at a call of the store, unless the fault changes
// a transfer or leaves out a collective. So the fault may come between any two of a rank's calls.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <c10/util/Exception.h>
#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Rank 1 writes data in two steps that must appear as one, and rank 0 reads it.
void write_in_two_steps(RankContext& ctx) {
  if (ctx.rank() == 1) {
    ctx.store()->set("half", "1");
    ctx.store()->set("whole", "1");
  } else {
    exec::this_rank::sleep_for(seconds(1));
    const bool half = !ctx.store()->compareSet("half", "", "").empty();
    const bool whole = !ctx.store()->compareSet("whole", "", "").empty();
    ctx.expect(half == whole, "both were written, or none");
  }
}

Report run_two(const std::vector<std::string>& faults, const World::Body& body = write_in_two_steps) {
  return run(world_with(faults, 2), body);
}

TEST(StoreCallFaults, Crash_ComesBetweenTwoCalls) {
  for (const std::string when : {"at=set#2", "call=set#2"}) {
    const auto report = run_two({"crash rank=1 " + when});
    EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
    EXPECT_EQ(fired(report), "rank 1 in set of key \"whole\"");
  }
  EXPECT_EQ(run_two({"crash rank=1 at=set#1"}).verdict, Verdict::ok);
  EXPECT_EQ(run_two({"crash rank=1 at=set"}).verdict, Verdict::ok);
}

TEST(StoreCallFaults, Pause_LetsOthersComeBetween) {
  const auto report = run_two({"pause rank=1 at=set#2 for=2s"});
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
}

TEST(StoreCallFaults, FailOp_Throws) {
  const auto report = run_two({"fail_op rank=0 call=add#2"}, [](RankContext& ctx) {
    if (ctx.rank() == 1) return;
    EXPECT_EQ(ctx.store()->add("count", 1), 1);
    try {
      ctx.store()->add("count", 1);
      ADD_FAILURE() << "the second add did not fail";
    } catch (const c10::DistStoreError& error) {
      EXPECT_THAT(error.what(), HasSubstr("add of key \"count\" failed: an injected error of the store"));
    }
    EXPECT_EQ(ctx.store()->add("count", 1), 2);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(StoreCallFaults, FailOpThatNobodyCatches_FailsTheRank) {
  const auto report = run_two({"fail_op rank=0 call=set#1"}, [](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("go", std::vector<std::uint8_t>{1});
    ctx.store()->wait({"go"});
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.headline, HasSubstr("rank 0: set of key \"go\" failed: an injected error of the store"));
}

TEST(StoreCallFaults, TheOtherVerbs_Too) {
  EXPECT_EQ(run_two({"hang rank=1 at=set#2"}).verdict, Verdict::check_failed);
  EXPECT_EQ(run_two({"exit rank=1 at=set#2 status=3"}).verdict, Verdict::rank_failed);
  EXPECT_EQ(run_two({"clock_jump rank=0 at=compareSet#1 by=1h"}).verdict, Verdict::ok);
  const auto again = run_two({"crash rank=1 at=set#2 restart=1ms"});
  EXPECT_EQ(again.verdict, Verdict::ok) << again.headline;
  EXPECT_EQ(run_two({"partition rank=1 at=set#2 for=3s"}).verdict, Verdict::check_failed);
}

TEST(StoreCallFaults, ThatDidNotFire_SayHowManyCallsThereWere) {
  const auto report = run_two({"crash rank=1 at=set#3"});
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_THAT(report.headline, HasSubstr("no call fitted; rank 1 made 2 calls of the store"));
}

// If calls of the store take time, a crash that is set for a point in time can come between them, too.
TEST(StoreCallFaults, CallsThatTakeTime_HaveSomethingBetweenThem) {
  auto options = world_with({"crash rank=1 after=30us"}, 2);
  EXPECT_EQ(run(options, write_in_two_steps).verdict, Verdict::fault_not_fired);
  options.network.store = std::chrono::microseconds(20);
  const auto report = run(options, write_in_two_steps);
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(seconds(1) + std::chrono::microseconds(40)));
}

TEST(StoreCallFaults, OfASwarm_ComeAtAnyOfItsCalls) {
  WorldOptions options = world_with({}, 2);
  options.swarm = {.on = true, .families = {parse_fault_family("crash rank=1 call=set")}, .calls = 4};
  int failed = 0;
  for (options.seed = 1; options.seed <= 40; ++options.seed) {
    failed += run(options, write_in_two_steps).verdict == Verdict::check_failed ? 1 : 0;
  }
  EXPECT_GT(failed, 1);
  EXPECT_LT(failed, 20);
}

TEST(StoreCallFaults, ThatMakeNoSense_AreRefused) {
  for (const std::string text : {"delay at=set#1 for=1ms", "corrupt at=get#1", "crash at=set#1 group=world",
                                 "skip_collective at=set", "crash at=sett#1"}) {
    EXPECT_THROW(parse_fault(text), FaultError) << text;
  }
  EXPECT_EQ(to_string(parse_fault("crash rank=1 at=set#2")), "crash rank=1 at=set#2");
}

}  // namespace
}  // namespace rehearse::test
