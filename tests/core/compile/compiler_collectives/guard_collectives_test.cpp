// SPDX-License-Identifier: BSD-3-Clause
// Contract: with guard collectives, all ranks compare their guards equally often in each call. If a rank must run the
// rest of a call in eager mode, all ranks do.
#include <functional>
#include <thread>
#include <vector>

#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>

#include "core/compile/compiler_collectives/seed_fixture.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace guard_collectives {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;

at::Tensor small() { return at::full({4}, 0.25F); }
at::Tensor large() { return at::full({4}, 8.F); }

CompileOptions guarded(RankContext& ctx, bool compilers_too, Verify verify = Verify::FirstHit) {
  auto options = together(ctx);
  options.fullgraph = false;
  options.guard_collectives = true;
  options.compiler_collectives = compilers_too;
  options.verify = verify;
  return options;
}

// Runs `body` without and with compiler collectives, on 2, 3 and 8 ranks.
template <class Body>
void on_guarded_ranks(const Body& body) {
  for (const int ranks : {2, 3, 8}) {
    for (const bool compilers_too : {false, true}) {
      const auto report = World({.ranks = ranks, .seed = 1}).run([&](RankContext& ctx) { body(ctx, compilers_too); });
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    }
  }
}

bool is_last(RankContext& ctx) { return ctx.rank() == ctx.size() - 1; }

// The first region gives an alias of its argument if `aliases`.
auto with_regions(const bool& aliases) {
  return [&aliases](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    const at::Tensor z =
        eager_region([](const at::Tensor& t, const bool& is_view) { return is_view ? t.view({-1}) : t.clone(); }, y,
                     std::ref(aliases));
    z.add_(1);
    const at::Tensor w = eager_region([](const at::Tensor& t) { return t * 3; }, z + y);
    return w - z;
  };
}

TEST(GuardCollectives, RegionThatGivesAnAliasOnOneRank_EndsTheGraphsOfAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool aliases = false;
    const auto function = with_regions(aliases);
    auto compiled = compile(function, guarded(ctx, compilers_too));
    for (const bool now : {false, false, true, false, true, false}) {
      aliases = now && is_last(ctx);
      EXPECT_THAT(compiled(small()), BitEqual(function(small())));
      ctx.group().allreduce(at::ones({1}))->wait();
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
    EXPECT_EQ(compiled.stats().eager_calls, 2);
  });
}

TEST(GuardCollectives, RegionThatGivesAnAliasOnOneRankAtFirst_IsRefusedOnAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    const bool aliases = is_last(ctx);
    const auto function = with_regions(aliases);
    auto compiled = compile(function, guarded(ctx, compilers_too));
    for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(small()), BitEqual(function(small())));
    EXPECT_EQ(compiled.stats().eager_calls, 3);
  });
}

TEST(GuardCollectives, BranchThatOneRankLacks_RunsEagerlyOnAllIfTheCacheIsFull) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    auto options = guarded(ctx, compilers_too);
    options.recompile_limit = 1;
    const auto function = [](const at::Tensor& x) {
      const at::Tensor y = (x.sum() > 4).item<bool>() ? x / 2 : x * 4;
      return (y.max() > 3).item<bool>() ? y + 1 : y - 1;
    };
    auto compiled = compile(function, options);
    for (const bool now : {false, true, false, true}) {
      const at::Tensor x = now && is_last(ctx) ? large() : small();
      EXPECT_THAT(compiled(x), BitEqual(function(x)));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
    EXPECT_EQ(compiled.stats().eager_calls, 2);
  });
}

at::Tensor looking(const at::Tensor& x, bool looks) {
  const at::Tensor y = x * 2;
  return looks ? y + (y.data_ptr() == nullptr ? 1 : 0) : y;
}

TEST(GuardCollectives, FunctionThatOneRankRefusesInAVerification_RunsEagerlyOnAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool looks = false;
    auto compiled =
        compile([&](const at::Tensor& x) { return looking(x, looks); }, guarded(ctx, compilers_too, Verify::Always));
    for (int call = 0; call < 4; ++call) {
      looks = call == 1 && is_last(ctx);
      EXPECT_THAT(compiled(small()), BitEqual(small() * 2));
    }
  });
}

// The code that the other ranks come to would make graphs behind a read. They are not compiled either.
TEST(GuardCollectives, FunctionThatOneRankRefusesWhileOthersRead_RunsEagerlyOnAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool looks = false, reads = false;
    const Group group = ctx.group();
    const auto function = [&](const at::Tensor& x) {
      const at::Tensor y = looking(x, looks);
      if (!looks && !reads) return y;
      const bool is_positive = looks || (y.sum() > 0).item<bool>();
      eager_region([](const at::Tensor& t, const Group& among) { among.allreduce(t)->wait(); }, y, std::ref(group));
      return is_positive ? y + 1 : y;
    };
    auto compiled = compile(function, guarded(ctx, compilers_too, Verify::Always));
    for (int call = 0; call < 3; ++call) {
      looks = call == 1 && is_last(ctx);
      reads = call == 1 && !is_last(ctx);
      const at::Tensor expected = call == 1 ? small() * 2 * ctx.size() + 1 : small() * 2;
      EXPECT_THAT(compiled(small()), BitEqual(expected));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

// Two threads of each rank call the function at once. The thread that comes first finds that the function cannot be
// captured any more. The other thread has waited for it.
TEST(GuardCollectives, FunctionThatAnotherThreadRefuses_IsComparedAllTheSame) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool looks = false;
    auto compiled =
        compile([&](const at::Tensor& x) { return looking(x, looks); }, guarded(ctx, compilers_too, Verify::Always));
    compiled(small());
    looks = is_last(ctx);
    const auto call = [&] { EXPECT_THAT(compiled(small()), BitEqual(small() * 2)); };
    std::thread first(call), second(call);
    first.join();
    second.join();
    looks = false;
    call();
  });
}

// Code of three segments, with a collective in the second one. `added` changes the graph of segment `where`, and no
// guard checks it.
auto with_reads(const Group& group, const int& where, const double& added) {
  return [&](const at::Tensor& x) {
    at::Tensor y = x * 2;
    if (where == 0 && added != 0) y = y + added;
    at::Tensor z = y + y.sum().item<double>();
    if (where == 1 && added != 0) z = z + added;
    group.allreduce(z)->wait();
    const at::Tensor w = z - z.sum().item<double>();
    return where == 2 && added != 0 ? w + added : w;
  };
}

// Verify::Always runs the code, so a rank knows only after the code of a segment whether it has compiled its graph.
TEST(GuardCollectives, SegmentThatVerificationFindsChangedOnOneRank_IsCompiledByAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      for (const int where : {0, 1, 2}) {
        double added = 0;
        auto options = guarded(ctx, compilers_too, Verify::Always);
        options.backend = backend;
        const auto function = with_reads(ctx.group(), where, added);
        auto compiled = compile(function, options);
        for (int call = 0; call < 8; ++call) {
          added = call < 3 ? 0 : is_last(ctx) ? call % 2 : call == 6 ? 3 : 0;
          const at::Tensor x = at::ones({call < 5 ? 3 : 4});
          EXPECT_THAT(compiled(x), BitEqual(function(x))) << backend << ", segment " << where << ", call " << call;
        }
        expect_same_number(ctx, compiled);
        EXPECT_EQ(compiled.stats().eager_calls, 0);
      }
    }
  });
}

TEST(GuardCollectives, SegmentThatVerificationFindsChangedOnOneRank_RunsEagerlyOnAllIfTheCacheIsFull) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    for (const int where : {0, 1, 2}) {
      double added = 0;
      auto options = guarded(ctx, compilers_too, Verify::Always);
      options.recompile_limit = 2;
      const auto function = with_reads(ctx.group(), where, added);
      auto compiled = compile(function, options);
      for (const int now : {0, 0, 1, 2, 3, 0, 2}) {
        added = is_last(ctx) ? now : 0;
        EXPECT_THAT(compiled(small()), BitEqual(function(small()))) << "segment " << where << ", " << now;
      }
      EXPECT_GT(compiled.stats().eager_calls, 0);
    }
  });
}

TEST(GuardCollectives, CodeBehindAReadThatOneRankRefusesInAVerification_RunsEagerlyOnAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool looks = false;
    const Group group = ctx.group();
    const auto function = [&](const at::Tensor& x) {
      at::Tensor y = looking(x + x.sum().item<double>(), looks);
      group.allreduce(y)->wait();
      return y * (y.sum() > 0).item<bool>();
    };
    auto compiled = compile(function, guarded(ctx, compilers_too, Verify::Always));
    for (int call = 0; call < 5; ++call) {
      looks = call == 2 && is_last(ctx);
      EXPECT_THAT(compiled(small()), BitEqual((small() + 1) * 2 * ctx.size())) << call;
    }
  });
}

// The code of one rank keeps a tensor, and then does what cannot be captured. Its call is an error, and the others must
// not be one comparison ahead.
TEST(GuardCollectives, CodeThatKeepsATensorAndIsRefusedOnOneRank_LeavesTheRanksInStep) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    for (const bool reads : {false, true}) {
      bool looks = false;
      std::vector<at::Tensor> kept;
      const auto function = [&](const at::Tensor& x) {
        const at::Tensor y = reads ? x * x.sum().item<double>() : x * 2;
        if (looks) kept.push_back(y * 3);
        return looking(y, looks);
      };
      auto compiled = compile(function, guarded(ctx, compilers_too, Verify::Always));
      for (int call = 0; call < 6; ++call) {
        looks = call == 3 && is_last(ctx);
        const at::Tensor expected = looking(small() * (reads ? 1 : 2), false);
        try {
          EXPECT_THAT(compiled(small()), BitEqual(expected)) << call;
        } catch (const CompileError&) {
          EXPECT_TRUE(looks);
        }
        ctx.group().barrier()->wait();
      }
    }
  });
}

TEST(GuardCollectives, RegionThatGivesAnAliasOnOneRankInAVerification_EndsTheGraphsOfAll) {
  on_guarded_ranks([](RankContext& ctx, bool compilers_too) {
    bool aliases = false;
    const auto function = with_regions(aliases);
    auto compiled = compile(function, guarded(ctx, compilers_too, Verify::Always));
    for (const bool now : {false, false, true, false, true, false}) {
      aliases = now && is_last(ctx);
      EXPECT_THAT(compiled(small()), BitEqual(function(small())));
      ctx.group().allreduce(at::ones({1}))->wait();
    }
    EXPECT_EQ(compiled.stats().eager_calls, 2);
  });
}

}  // namespace
}  // namespace guard_collectives
