// SPDX-License-Identifier: BSD-3-Clause
// Contract: each segment after a read or an eager region is a compilation with compiler collectives. No rank runs a
// segment that another rank failed to compile. With guard collectives, if one rank lacks a segment, all ranks compile.
#include <memory>
#include <string>

#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/errors.h>

#include "core/compile/compiler_collectives/seed_fixture.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace segment_collectives {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

at::Tensor clipped(const at::Tensor& x) {
  const at::Tensor norm = x.norm();
  return (norm > 1).item<bool>() ? x / norm : x * 1;
}

at::Tensor small() { return at::full({4}, 0.25F); }
at::Tensor large() { return at::full({4}, 8.F); }

CompileOptions segmented(RankContext& ctx, bool guards = false) {
  auto options = together(ctx);
  options.fullgraph = false;
  options.guard_collectives = guards;
  return options;
}

template <class Compiled>
Counts compiles_of(Compiled& compiled, const std::vector<at::Tensor>& inputs) {
  return call_each(clipped, compiled, std::vector<std::tuple<at::Tensor>>(inputs.begin(), inputs.end()));
}

TEST(SegmentCollectives, RanksInDifferentBranches_CompileEachTogether) {
  on_ranks([](RankContext& ctx) {
    auto compiled = compile(clipped, segmented(ctx));
    const bool first = ctx.rank() == 0;
    EXPECT_EQ(compiles_of(compiled, {first ? small() : large(), first ? large() : small(), small()}),
              (Counts{1, 1, 0}));
    EXPECT_EQ(compiled.stats().graphs, 3);  // up to the read, and both branches
  });
}

// Rank 0 compiles an entry, another entry and a branch. The other ranks compile an entry, a branch and another entry,
// and not in the same calls as rank 0. The n-th compilations of all ranks match, whatever they compile.
TEST(SegmentCollectives, AnySegment_MatchesAnyOther) {
  on_ranks([](RankContext& ctx) {
    auto compiled = compile(clipped, segmented(ctx));
    const auto shorter = at::full({1}, 0.5F), shorter_large = at::full({1}, 2.F);
    if (ctx.rank() == 0) {
      EXPECT_EQ(compiles_of(compiled, {small(), small(), shorter, shorter_large, small()}), (Counts{1, 0, 1, 1, 0}));
    } else {
      EXPECT_EQ(compiles_of(compiled, {small(), large(), small(), shorter}), (Counts{1, 1, 0, 1}));
    }
  });
}

TEST(SegmentCollectives, RankThatTakesABranchAlone_IsNamed) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    auto compiled = compile(clipped, segmented(ctx));
    compiled(small());
    compiled(ctx.rank() == 1 ? large() : small());
    ctx.group().allreduce(at::ones({1}))->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline,
              testing::MatchesRegex(
                  "rank 1 compiles f \\(call 2: behind a read that gave true\\) at "
                  "segment_collectives_test\\.cpp:[0-9]+ in .*, rank 0 used compiled entry 0 in call 2 and is in "
                  "allreduce #1 on group \"world\".*; guard collectives would have made both compile; .*"));
}

TEST(SegmentCollectives, GuardCollectives_MakeAllCompileWhatOneLacks) {
  for (const bool compilers_too : {false, true}) {
    for (const auto verify : {Verify::Never, Verify::FirstHit}) {
      on_ranks([=](RankContext& ctx) {
        auto options = segmented(ctx, true);
        options.compiler_collectives = compilers_too;
        options.verify = verify;
        auto compiled = compile(clipped, options);
        EXPECT_EQ(compiles_of(compiled, {small(), ctx.rank() == 0 ? large() : small(), large(), small()}),
                  (Counts{1, 1, 1, 0}));
        expect_same_number(ctx, compiled);
      });
    }
  }
}

at::Tensor in_three(const at::Tensor& x) {
  at::Tensor y = eager_region([](const at::Tensor& t) { return t * 3; }, x + 1);
  y = eager_region([](const at::Tensor& t) { return t - 1; }, y.exp());
  return y.sum();
}

TEST(SegmentCollectives, EagerRegions_EndSegmentsToo) {
  on_ranks([](RankContext& ctx) {
    auto compiled = compile(in_three, segmented(ctx));
    for (const int length : ctx.rank() == 0 ? std::vector{3, 4} : std::vector{5, 6}) {
      const at::Tensor x = at::arange(length, at::kFloat) / 8;
      EXPECT_THAT(compiled(x), BitEqual(in_three(x)));
    }
    EXPECT_EQ(compiled.stats().graphs, 4 + 1);  // a region's result of another size makes another branch
    expect_same_number(ctx, compiled);
  });
}

// If `fails`, cannot compile the second graph that it gets.
class FailsOnce final : public Backend {
 public:
  explicit FailsOnce(bool fails) : fails_(fails) {}
  std::string name() const override { return "fails"; }
  CompiledGraph compile(const BackendInput& input) override {
    if (++graphs_ == 2 && fails_) throw std::runtime_error("no registers left");
    return make_backend("eager")->compile(input);
  }

 private:
  const bool fails_;
  int graphs_ = 0;
};

TEST(SegmentCollectives, SegmentThatOneRankCannotCompile_RunsOnNoRank) {
  on_ranks([](RankContext& ctx) {
    auto options = segmented(ctx);
    options.backend = std::make_shared<FailsOnce>(ctx.rank() == 1);
    auto compiled = compile(clipped, options);
    EXPECT_THAT([&] { compiled(small()); },
                testing::ThrowsMessage<CompileError>(
                    testing::AllOf(StartsWith("rank 1 could not compile f"), HasSubstr("no registers left"))));
    EXPECT_EQ(compiled.stats().compiles, 0);
    EXPECT_EQ(compiles_of(compiled, {small(), large()}), (Counts{1, 1}));
  });
}

TEST(SegmentCollectives, BranchThatOneRankCannotCompile_IsNotKept) {
  on_ranks([](RankContext& ctx) {
    auto options = segmented(ctx);
    options.backend = std::make_shared<FailsOnce>(ctx.rank() == 1);
    options.name = "g";
    auto compiled = compile([](const at::Tensor& x) { return x.sum().item<float>() > 2 ? x + 1 : x - 1; }, options);
    EXPECT_THROW(compiled(small()), CompileError);
    EXPECT_THAT(compiled(small()), BitEqual(small() - 1));
    EXPECT_THAT(compiled(large()), BitEqual(large() + 1));
  });
}

at::Tensor with_pointer(const at::Tensor& x, const Group& group, bool looks) {
  at::Tensor y = (x.sum() > 0).item<bool>() ? x * 2 : x;
  if (looks) y = y + (y.data_ptr() == nullptr ? 1 : 0);
  eager_region([](const at::Tensor& t, const Group& among) { among.allreduce(t)->wait(); }, y, std::ref(group));
  return y;
}

TEST(SegmentCollectives, SegmentThatNoRankCanCapture_RunsEagerly) {
  on_ranks([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile([&](const at::Tensor& x) { return with_pointer(x, group, true); }, segmented(ctx));
    for (int call = 0; call < 2; ++call) {
      EXPECT_THAT(compiled(small()), BitEqual(small() * 2 * ctx.size()));
      EXPECT_EQ(compiled.stats().eager_calls, call + 1);
    }
  });
}

TEST(SegmentCollectives, SegmentThatOneRankCannotCapture_RunsEagerlyOnAllRanks) {
  on_ranks([](RankContext& ctx) {
    const Group group = ctx.group();
    const bool looks = ctx.rank() == 1;
    auto compiled = compile([&](const at::Tensor& x) { return with_pointer(x, group, looks); }, segmented(ctx));
    for (int call = 0; call < 2; ++call) {
      EXPECT_THAT(compiled(small()), BitEqual(small() * 2 * ctx.size()));
      EXPECT_EQ(compiled.stats().eager_calls, call + 1);
    }
    if (!looks) {
      EXPECT_THAT(compiled.explain().refusal, StartsWith("rank 1 cannot capture it: "));
    }
  });
}

TEST(SegmentCollectives, WithoutAGroup_ABranchAloneIsARemark) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    auto compiled = compile(clipped, {.name = "f"});
    EXPECT_EQ(compiles_of(compiled, {small(), ctx.rank() == 2 ? large() : small()}),
              (Counts{1, ctx.rank() == 2 ? 1 : 0}));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  EXPECT_THAT(report.remarks,
              ElementsAre(StartsWith("rank 2 alone recompiled f in call 2: behind a read that gave true at "
                                     "segment_collectives_test.cpp:")));
}

}  // namespace
}  // namespace segment_collectives
