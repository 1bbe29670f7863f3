// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a rank waits for a compilation that another rank does not make, the report comes at once, with both
// ranks' calls. A rank that compiles alone without consequences gets a remark.
#include <functional>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/job/compile_journal.h>

#include "compile/compiler_collectives/compiler_collectives.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace divergence_reports {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

const CollectiveLabel kNoLine{"f", ""};
constexpr const char* kWhy = "y is 4, guard y == 3 of entry 0";

// A compiled function, as the compiler collectives and the compile journal see it.
struct Function {
  Function(RankContext& ctx, bool meets) : collectives(ctx.group()), record(record_function("f", meets)) {}

  void compile(const std::string& why) {
    record->called();
    record->compiles(why, exec::CallSite::capture());
    if (record->uses_collectives()) collectives.exchange({}, kNoLine);
    record->gives({});
    if (record->uses_collectives()) collectives.commit(GraphHash{1}, kNoLine);
    record->done();
  }
  void hit() {
    record->called();
    record->hit(0);
  }
  bool guarded_call() {
    record->called();
    record->agrees();
    const bool all = collectives.least(Ability::serve, kNoLine) == Ability::serve;
    record->hit(0);
    return all;
  }

  CompilerCollectives collectives;
  std::shared_ptr<FunctionRecord> record;
};

TEST(DivergenceReports, RankThatHitItsCache_IsNamedWithItsCall) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    Function f(ctx, true);
    f.compile("");
    ctx.rank() == 1 ? f.compile(kWhy) : f.hit();
    ctx.group().allreduce(at::ones({1}))->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(
      report.headline,
      testing::MatchesRegex("rank 1 compiles f \\(call 2: y is 4, guard y == 3 of entry 0\\) at "
                            "divergence_report_test\\.cpp:[0-9]+ in .*, rank 0 used compiled entry 0 in call 2 and is "
                            "in allreduce #1 on group \"world\".* at divergence_report_test\\.cpp:[0-9]+ in .*; guard "
                            "collectives would have made both compile; ranks 0 -> 1 -> 0 wait for each other: .*"));
  EXPECT_LT(report.rank_lines[0].at - kTimeZero, 1s);  // the report comes at once
}

TEST(DivergenceReports, World_KeepsCompilationTimesAndCallSites) {
  World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    Function f(ctx, false);
    ctx.compute(3ms);
    f.compile("");
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  const auto& functions = world.compiled().functions();
  ASSERT_EQ(functions.size(), 2u);
  for (const auto& function : functions) {
    ASSERT_EQ(function->compiles().size(), 1u);
    EXPECT_EQ(function->compiles().front().at, kTimeZero + 3ms);
  }
  const auto calls = world.explained_events().of_rank(0);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_THAT(world.explained_events().call_site(calls.front()).describe(), StartsWith("divergence_report_test.cpp:"));
  EXPECT_EQ(world.explained_events().hash(), world.events().hash());
}

TEST(DivergenceReports, RanksInTheSameState_ShareAPhrase) {
  const auto report = World({.ranks = 4}).run([](RankContext& ctx) {
    Function f(ctx, true);
    f.compile("");
    ctx.rank() >= 2 ? f.compile(kWhy) : f.hit();
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("ranks 2-3 compile f (call 2: "));
  EXPECT_THAT(report.headline, HasSubstr(", ranks 0-1 used compiled entry 0 in call 2 and are in barrier #1"));
  EXPECT_THAT(report.headline, HasSubstr("; guard collectives would have made all compile; "));
}

TEST(DivergenceReports, RankThatHasEnded_IsReportedAsReturned) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    Function f(ctx, true);
    f.compile("");
    if (ctx.rank() == 1) f.compile(kWhy);
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, HasSubstr(", rank 0 compiled f in call 1 and has returned; "));
  EXPECT_THAT(report.headline, testing::Not(HasSubstr("guard collectives")));
}

TEST(DivergenceReports, RankThatNeverCalledTheFunction_IsNamed) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    Function f(ctx, true);
    f.compile("");
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, HasSubstr("rank 0 never called f and has returned; "));
}

TEST(DivergenceReports, GuardCollectives_NameTheCall) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    Function f(ctx, true);
    f.guarded_call();
    if (ctx.rank() == 0) f.guarded_call();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 0 is agreeing with the other ranks in call 2 of f, rank 1 used "
                                          "compiled entry 0 in call 1 and has returned; "));
}

TEST(DivergenceReports, LoneCompilation_IsARemark) {
  const auto body = [](RankContext& ctx) {
    Function f(ctx, false);
    f.compile("");
    f.hit();
    ctx.rank() == 1 ? f.compile(kWhy) : f.hit();
  };
  const auto report = World({.ranks = 3}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_THAT(report.remarks,
              ElementsAre(StartsWith("rank 1 alone recompiled f in call 3: y is 4, guard y == 3 of entry 0 at "
                                     "divergence_report_test.cpp:")));
  const auto failed = World({.ranks = 3, .compile_divergence = CompileDivergence::fail}).run(body);
  EXPECT_EQ(failed.verdict, Verdict::check_failed);
  EXPECT_THAT(failed.headline, StartsWith("rank 1 alone recompiled f in call 3: "));
  EXPECT_THAT(failed.remarks, IsEmpty());
}

TEST(DivergenceReports, CallThatIsRefused_IsNoRecompilation) {
  const auto report = World({.ranks = 3, .compile_divergence = CompileDivergence::fail}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto f = compile([&](const at::Tensor& x, std::int64_t k) { return k == 4 ? x + group.rank() : x * k; });
    f(at::ones({2}), 3);
    f(at::ones({2}), ctx.rank() == 1 ? 4 : 3);
    EXPECT_EQ(f.stats().eager_calls, ctx.rank() == 1 ? 1 : 0);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST(DivergenceReports, LoneCompilation_NamesTheGuardThatFailedOnlyThere) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    auto f = compile([](const at::Tensor& x, std::int64_t k) { return x * k; }, {.name = "f"});
    for (const std::int64_t k : {3, 4, 3, 4}) f(at::ones({2}), k);
    f(at::ones({2}, ctx.rank() == 1 ? at::kDouble : at::kFloat), std::int64_t{3});
    auto g = compile([](const at::Tensor& x) { return x.sym_size(0) > 5 ? x.sin() : x.cos(); },
                     {.dynamic = true, .name = "g"});
    g(at::ones({9}));
    g(at::ones({ctx.rank() == 1 ? 3 : 8}));
  });
  EXPECT_THAT(report.remarks,
              ElementsAre(MatchesRegex("rank 1 alone recompiled f in call 5: arg0.* of entry 0 at .*"),
                          MatchesRegex("rank 1 alone recompiled g in call 2: arg0\\.size\\(0\\) is 3, guard "
                                       ".*arg0\\.size\\(0\\).* of entry 0 at .*")));
}

TEST(DivergenceReports, LoneCompilationBeforeAHang_IsTheCause) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    Function f(ctx, false);
    f.compile("");
    ctx.rank() == 1 ? f.compile(kWhy) : f.hit();
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 1 alone recompiled f in call 2: y is 4, guard y == 3 of entry 0 at "));
  EXPECT_THAT(report.headline, HasSubstr("; barrier #1 on group \"world\": rank 1 has ended and will never come"));
  EXPECT_THAT(report.remarks, IsEmpty());
}

constexpr const char* kAlone = "rank 1 alone recompiled f in call 2: y is 4, guard y == 3 of entry 0 at ";

// Runs a world of `ranks` ranks in which rank 1 alone recompiles in its second call. Then each rank runs `rest`.
// `communicates`: rank 1's new graph has collectives.
Report run_alone(int ranks, const std::function<void(RankContext&, Function&)>& rest, bool communicates = false) {
  return World({.ranks = ranks}).run([&](RankContext& ctx) {
    Function f(ctx, false);
    f.compile("");
    ctx.rank() == 1 ? f.compile(kWhy) : f.hit();
    if (ctx.rank() == 1 && communicates) f.record->communicates();
    rest(ctx, f);
  });
}

// A lone compilation that did not lead to the failure is a remark.
void expect_remark(const Report& report, Verdict verdict) {
  EXPECT_EQ(report.verdict, verdict) << sim::to_text(report);
  EXPECT_THAT(report.headline, testing::Not(HasSubstr("recompiled")));
  EXPECT_THAT(report.remarks, ElementsAre(StartsWith(kAlone)));
}

void expect_cause(const Report& report, Verdict verdict) {
  EXPECT_EQ(report.verdict, verdict) << sim::to_text(report);
  EXPECT_THAT(report.headline, StartsWith(kAlone));
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST(DivergenceReports, LoneCompilation_DoesNotCauseAHangOfOtherRanks) {
  expect_remark(run_alone(3,
                          [](RankContext& ctx, Function&) {
                            if (ctx.rank() != 1) ctx.group().recv(at::zeros({1}), 2 - ctx.rank())->wait();
                          }),
                Verdict::deadlock);
}

TEST(DivergenceReports, LoneCompilation_DoesNotCauseAHangInWhichItsRankWaits) {
  expect_remark(run_alone(3,
                          [](RankContext& ctx, Function&) {
                            if (ctx.rank() != 0) ctx.group().barrier()->wait();
                          }),
                Verdict::deadlock);
}

TEST(DivergenceReports, EqualCallsAfterwards_MakeItARemark) {
  const auto rest = [](RankContext& ctx, Function& f) {
    f.hit();
    if (ctx.rank() != 1) ctx.group().barrier()->wait();
  };
  expect_remark(run_alone(3, rest), Verdict::deadlock);
  expect_cause(run_alone(3, rest, true), Verdict::deadlock);  // the new graph communicates
}

TEST(DivergenceReports, GraphWithCollectives_CausesTheWaitOfItsOwnRank) {
  const auto rest = [](RankContext& ctx, Function&) {
    if (ctx.rank() == 1) ctx.group().allreduce(at::ones({1}))->wait();
  };
  expect_cause(run_alone(3, rest, true), Verdict::deadlock);
  expect_remark(run_alone(3, rest), Verdict::deadlock);
}

TEST(DivergenceReports, LoneCompilation_CausesTheTimeoutOfRanksThatWaitForIt) {
  for (const int late : {1, 2}) {
    const auto report = World({.ranks = 3, .timeout = 1s}).run([late](RankContext& ctx) {
      Function f(ctx, false);
      f.compile("");
      ctx.rank() == 1 ? f.compile(kWhy) : f.hit();
      if (ctx.rank() == late) ctx.compute(5s);
      ctx.group().barrier()->wait();
    });
    late == 1 ? expect_cause(report, Verdict::timeout) : expect_remark(report, Verdict::timeout);
  }
}

TEST(DivergenceReports, LoneCompilation_CausesTheMismatchOfItsRank) {
  for (const int odd : {1, 2}) {
    const auto report = run_alone(3, [odd](RankContext& ctx, Function&) {
      ctx.group().allreduce(at::ones({ctx.rank() == odd ? 2 : 1}))->wait();
    });
    odd == 1 ? expect_cause(report, Verdict::mismatch) : expect_remark(report, Verdict::mismatch);
  }
}

TEST(DivergenceReports, WithoutCompiledFunctions_HeadlineIsUnchanged) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.headline, "barrier #1 on group \"world\": rank 1 has ended and will never come");
}

}  // namespace
}  // namespace divergence_reports
