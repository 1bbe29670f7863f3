// SPDX-License-Identifier: BSD-3-Clause
// Contract: each rank of a fault is a target of its own. If the fault does not fire on a target, the ledger says why,
// and the verdict is that the fault did not fire. Optional faults may miss targets. So may faults with a probability or
// without named ranks, if they fired on another target.
#include <chrono>

#include <gtest/gtest.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/this_rank.h>

#include "sim/faults/faulty_world.h"

namespace rehearse::test {
namespace {

// Goes on after a failed call.
void train_on(RankContext& ctx) {
  for (int step = 0; step < 6; ++step) {
    try {
      ctx.group().allreduce(at::full({4}, 1.0))->wait();
    } catch (const CommError&) {
    }
  }
}

WorldOptions in_turn(const std::vector<std::string>& faults) {
  auto options = world_with(faults);
  options.schedule = Schedule::round_robin;
  return options;
}

TEST(Targets, WhoseCallFailedBefore_AreNamed) {
  const auto report = run(in_turn({"crash rank=0-2 call=allreduce#5 peers=disconnect"}), train_on);
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.faults[0].times, 1u);
  EXPECT_EQ(report.faults[0].why_not,
            R"(on ranks 1-2: allreduce #5 on group "world" failed: rank 0 closed the connection)");
  EXPECT_EQ(report.headline,
            "crash rank=0-2 call=allreduce#5 peers=disconnect: did not fire " + report.faults[0].why_not);
  EXPECT_NE(sim::to_text(report, {.width = 400}).find("; did not fire on ranks 1-2: allreduce #5"), std::string::npos);
}

TEST(Targets, OfAnOptionalFault_AreNamedAndOk) {
  const auto report = run(in_turn({"crash rank=0-2 call=allreduce#5 peers=disconnect optional=true"}), train_on);
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].why_not.find("on ranks 1-2: "), 0u);
}

TEST(Targets, AllHit_IsOk) {
  const auto report = run({"pause rank=0-2 at=allreduce#5 for=1ms"});
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].times, 3u);
  EXPECT_EQ(report.faults[0].why_not, "");
}

void send_to_one(RankContext& ctx) {
  auto value = at::full({4}, 1.0);
  if (ctx.rank() == 0) ctx.group().send(value, 1)->wait();
  if (ctx.rank() == 1) ctx.group().recv(value, 0)->wait();
  ctx.group().barrier()->wait();
}

TEST(Targets, NamedButWithoutSuchACall_AreMissed) {
  const auto report = run({"pause rank=0-1 at=send for=1ms"}, send_to_one);
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.faults[0].why_not, "on rank 1: no call fitted; rank 1 made 2 calls, none of kind send");
}

TEST(Targets, NotNamedAndWithoutSuchACall_AreNone) {
  const auto report = run({"pause at=send for=1ms"}, send_to_one);
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].times, 1u);
}

TEST(Targets, NotNamed_OneIsEnough) {
  const auto report = run(in_turn({"crash call=allreduce#5 peers=disconnect"}), train_on);
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.faults[0].times, 1u);
  EXPECT_EQ(report.faults[0].why_not, "");
}

TEST(Targets, LeftOutByTheDraw_AreNotMissed) {
  int some = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto options = world_with({"pause at=allreduce#1 p=0.5 for=1ms"});
    options.seed = seed;
    const auto report = run(options);
    const auto times = report.faults[0].times;
    EXPECT_EQ(report.verdict, times > 0 ? Verdict::ok : Verdict::fault_not_fired);
    some += times > 0 && times < 4 ? 1 : 0;
  }
  EXPECT_GT(some, 0);
}

TEST(Targets, AtATime_ThoseThatHadReturnedAreMissedWhereTheyAreNamed) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 0) exec::this_rank::sleep_for(std::chrono::milliseconds(5));
  };
  EXPECT_EQ(run({"clock_jump after=2ms by=1h"}, body).verdict, Verdict::ok);
  const auto report = run({"clock_jump rank=0-1 after=2ms by=1h"}, body);
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.faults[0].why_not, "on rank 1: the run ended at 5 ms, or the rank before");
}

// Eight all-reduces with labels, and a barrier without a label after the first, third, fifth and seventh of them. Ranks
// 0 and 1 also call on a group of their own.
void by_turns(RankContext& ctx) {
  auto part = ctx.new_group({0, 1}, "part");
  for (int step = 0; step < 8; ++step) {
    {
      const auto label = ctx.label(step == 0 ? "first" : "later");
      ctx.group().allreduce(at::full({8}, 1.0))->wait();
    }
    if (step % 2 == 0) ctx.group().barrier()->wait();
  }
  if (part) part->barrier()->wait();
}

std::string why_not(const std::string& fault) {
  const auto report = run({fault}, by_turns);
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline, report.faults[0].fault + ": " + report.faults[0].why_not);
  return report.faults[0].why_not;
}

TEST(WhyNot, AnotherCallHadTheNumber) {
  EXPECT_EQ(why_not("fail_op rank=1 at=barrier#3 group=world"),
            "#3 on group \"world\" was an allreduce; barriers were #2, #5, #8, #11; call=barrier#3 counts them alone");
  EXPECT_EQ(why_not("fail_op rank=1-2 at=allreduce#11 group=world"),
            "#11 on group \"world\" was a barrier; allreduces were #1, #3, #4, #6, #7, and 3 more");
  EXPECT_EQ(why_not("fail_op rank=2 at=broadcast#1"), "#1 on group \"world\" was an allreduce; no broadcast was there");
}

TEST(WhyNot, NoCallHadTheNumber) {
  EXPECT_EQ(why_not("fail_op rank=2 call=barrier#5"), "no call fitted; rank 2 made 12 calls, 4 of kind barrier");
  EXPECT_EQ(why_not("fail_op at=#20"), "no call fitted; all ranks made 50 calls");
}

TEST(WhyNot, NoSuchGroup) {
  EXPECT_EQ(why_not("fail_op rank=1 at=#1 group=prat"), "there is no group \"prat\"; there are \"world\", \"part\"");
  EXPECT_EQ(why_not("fail_op rank=2 at=#1 group=part"), "group \"part\" is of ranks 0-1");
  EXPECT_EQ(why_not("fail_op rank=1-2 at=#2 group=part"),
            "on rank 1: no call fitted; rank 1 made 13 calls; on rank 2: group \"part\" is of ranks 0-1");
}

TEST(WhyNot, NoSuchLabel) {
  EXPECT_EQ(why_not("fail_op rank=1 label=firts"), "no call had the label \"firts\"; there are \"first\", \"later\"");
  EXPECT_EQ(why_not("fail_op rank=1 at=barrier label=first"), "no call fitted; rank 1 made 13 calls");
}

TEST(WhyNot, NoSuchElement) {
  EXPECT_EQ(why_not("corrupt rank=2 call=allreduce#2 element=9999"),
            "allreduce #3 on group \"world\" brings 8 elements, 0 to 7");
}

}  // namespace
}  // namespace rehearse::test
