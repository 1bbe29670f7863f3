// SPDX-License-Identifier: BSD-3-Clause
// Contract: Verify::Always may recompile although all guards hold. That compilation runs the same compiler collectives
// as any other compilation.
#include "core/compile/compiler_collectives/seed_fixture.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace verify_collectives {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using testing::StartsWith;

CompileOptions always(RankContext& ctx, bool guards = false) {
  auto options = together(ctx);
  options.guard_collectives = guards;
  options.verify = Verify::Always;
  return options;
}

// State that guards do not see. `runs`: how often the code ran.
struct Hidden {
  double factor = 1;
  int runs = 0;
};

auto scaled_by(Hidden& hidden) {
  return [&hidden](const at::Tensor& x) {
    ++hidden.runs;
    return x * hidden.factor;
  };
}

TEST(VerifyCollectives, ChangeOnAllRanks_CompilesOnceMore) {
  on_ranks([](RankContext& ctx) {
    Hidden hidden;
    auto compiled = compile(scaled_by(hidden), always(ctx));
    const at::Tensor x = at::ones({3});
    for (const double factor : {1.0, 1.0, 2.0, 2.0, 1.0}) {
      hidden.factor = factor;
      EXPECT_THAT(compiled(x), BitEqual(x * factor));
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
    EXPECT_EQ(compiled.stats().verifications, 4);
    EXPECT_EQ(hidden.runs, 5);  // once in each call
    expect_same_number(ctx, compiled);
  });
}

TEST(VerifyCollectives, ChangeOnOneRank_NamesTheRank) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    Hidden hidden;
    auto compiled = compile(scaled_by(hidden), always(ctx));
    compiled(at::ones({3}));
    if (ctx.rank() == 1) hidden.factor = 2;
    compiled(at::ones({3}));
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("rank 1 compiles f (call 2: it gives another graph than entry 0 now) at "));
  EXPECT_THAT(report.headline, testing::HasSubstr("rank 0 used compiled entry 0 in call 2 and has returned"));
}

TEST(VerifyCollectives, GuardCollectives_SeeTheChange) {
  on_ranks([](RankContext& ctx) {
    Hidden hidden;
    auto compiled = compile(scaled_by(hidden), always(ctx, true));
    const at::Tensor x = at::ones({3});
    compiled(x);
    if (ctx.rank() == 1) hidden.factor = 2;
    for (const int compiles : {1, 0}) {
      EXPECT_THAT(compiled(x), BitEqual(x * hidden.factor));
      EXPECT_EQ(compiled.stats().compiles_in_last_call, compiles);
    }
    EXPECT_EQ(hidden.runs, 3);
    expect_same_number(ctx, compiled);
  });
}

// The ranks exchange sizes after the code has run. The next compilation is the first one that uses these sizes.
TEST(VerifyCollectives, SizesOfOtherRanks_CountFromTheNextCompilation) {
  on_ranks([](RankContext& ctx) {
    Hidden hidden;
    auto compiled = compile(scaled_by(hidden), always(ctx, true));
    compiled(at::ones({3}));
    if (ctx.rank() == 1) hidden.factor = 2;
    const auto second = at::ones({ctx.rank() == 1 ? 3 : 4});
    EXPECT_THAT(compiled(second), BitEqual(second * hidden.factor));
    const auto third = at::ones({5});
    EXPECT_THAT(compiled(third), BitEqual(third * hidden.factor));
    EXPECT_EQ(compiled.stats().compiles, 3);
    EXPECT_THAT(compiled(at::ones({6})), BitEqual(at::ones({6}) * hidden.factor));
    EXPECT_EQ(compiled.stats().compiles, 3);  // the size is dynamic
    EXPECT_EQ(hidden.runs, 4);
  });
}

}  // namespace
}  // namespace verify_collectives
