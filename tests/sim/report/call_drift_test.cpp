// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a rank makes calls of one kind too early or too late, and the run fails because of that, the report
// names the lines of these calls. It is silent about programs whose ranks call from different lines on purpose.
#include <string>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/fault.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace call_drift_test {
namespace {

using namespace rehearse;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

void sum(RankContext& ctx) { ctx.group().allreduce(at::ones({2}))->wait(); }

TEST(CallDrift, ACallLeftOutInTheMiddle_IsNamedByItsLine) {
  const auto report = World({.ranks = 4}).run([](RankContext& ctx) {
    for (int step = 0; step < 5; ++step) {
      if (step != 3 || ctx.rank() != 1) sum(ctx);
      sum(ctx);
    }
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(
      report.headline,
      MatchesRegex(
          "rank 1 is out of step from #7 of group \"world\" on: it left out the allreduce at "
          "call_drift_test.cpp:[0-9]+ "
          "in .*sum, from call_drift_test.cpp:[0-9]+ in .*, which ranks 0,2-3 made; allreduce #10 on group \"world\": "
          "rank 1 has ended and will never come"));
  EXPECT_THAT(report.remarks, IsEmpty());
  EXPECT_THAT(sim::to_text(report), HasSubstr("\nculprit: rank 1, out of step from #7 of group \"world\" on\n"));
  EXPECT_EQ(report.hint, "");
}

// The rank catches the error and goes on.
TEST(CallDrift, ACallThatAFaultFailed_NamesTheFault) {
  const auto report = World({.ranks = 4, .faults = {parse_fault("fail_op rank=1 at=#7")}}).run([](RankContext& ctx) {
    for (int step = 0; step < 5; ++step) {
      try {
        sum(ctx);
      } catch (const CommError&) {
      }
      sum(ctx);
    }
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, HasSubstr(", which ranks 0,2-3 made (fault on rank 1: fail_op rank=1 at=#7); "));
}

TEST(CallDrift, OfTwoRanks_EitherMayBeWrong) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 1) sum(ctx);
    sum(ctx);
    sum(ctx);
  });
  EXPECT_THAT(
      report.headline,
      MatchesRegex(
          "rank 0 is out of step from #1 of group \"world\" on: it left out the allreduce at .*, or rank 1 made "
          "too many; .*"));
}

TEST(CallDrift, CallsThatMostRanksDoNotMake_AreTheOthers) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    sum(ctx);
    if (ctx.rank() == 2) {
      sum(ctx);
      sum(ctx);
    }
    sum(ctx);
    sum(ctx);
    sum(ctx);
  });
  EXPECT_THAT(report.headline,
              MatchesRegex("rank 2 is out of step from #2 of group \"world\" on: it made 2 calls from the "
                           "allreduce at .* on, which ranks 0-1 left out; .*"));
}

// Rank 0 calls from lines of its own, and its last call is one too many.
TEST(CallDrift, LinesThatDifferThroughout_AreNone) {
  const auto branches = [](RankContext& ctx, int more) {
    for (int step = 0; step < 4 + more; ++step) {
      if (ctx.rank() == 0) {
        sum(ctx);
      } else if (step < 4) {
        sum(ctx);
      }
    }
  };
  const auto failed = World({.ranks = 3}).run([&](RankContext& ctx) { branches(ctx, 1); });
  EXPECT_EQ(failed.verdict, Verdict::deadlock);
  EXPECT_THAT(failed.remarks, IsEmpty());
  const auto good = World({.ranks = 3}).run([&](RankContext& ctx) { branches(ctx, 0); });
  EXPECT_EQ(good.verdict, Verdict::ok);
  EXPECT_THAT(good.remarks, IsEmpty());
}

// One rank leaves out a whole step, so every call comes from its usual line. Labels reveal the missing step.
TEST(CallDrift, StepsThatAreAlike_AskForLabels) {
  const auto skips = [](bool labels) {
    return World({.ranks = 2}).run([=](RankContext& ctx) {
      for (int step = 0; step < 6; ++step) {
        if (step == 2 && ctx.rank() == 1) continue;
        if (labels) {
          const auto label = ctx.label("step " + std::to_string(step));
          sum(ctx);
        } else {
          sum(ctx);
        }
      }
    });
  };
  const auto report = skips(false);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.remarks, IsEmpty());
  EXPECT_THAT(report.hint, StartsWith("the calls from one line look the same: "));
  const auto labelled = skips(true);
  EXPECT_EQ(labelled.verdict, Verdict::mismatch);
  EXPECT_EQ(labelled.differences.at(0).sequence, 3u);
  EXPECT_EQ(labelled.hint, "");
}

}  // namespace
}  // namespace call_drift_test
