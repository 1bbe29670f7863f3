// SPDX-License-Identifier: BSD-3-Clause
// Contract: if the code of one rank throws, keeps a tensor or is refused while the ranks compile, the collectives that
// it has recorded meet those of the other ranks. The results are those of eager mode, and only the rank whose code
// throws gets an exception. The ranks stay in step: later calls compile, or run eagerly, on all ranks.
#include <functional>
#include <stdexcept>
#include <vector>

#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>

#include "core/compile/compiler_collectives/seed_fixture.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace runs_once {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;

// Runs `body` with compiler collectives, with guard collectives, and with both, on 2, 3 and 8 ranks.
template <class Body>
void on_agreeing_ranks(const Body& body) {
  for (const int ranks : {2, 3, 8}) {
    for (const auto& [compilers, guards] : {std::pair(true, false), {false, true}, {true, true}}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << (compilers ? "compiler " : "")
                                      << (guards ? "guard" : ""));
      const auto report = World({.ranks = ranks, .seed = 1}).run([&](RankContext& ctx) {
        auto options = together(ctx);
        options.fullgraph = false;
        options.compiler_collectives = compilers;
        options.guard_collectives = guards;
        body(ctx, options);
      });
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    }
  }
}

bool is_last(RankContext& ctx) { return ctx.rank() == ctx.size() - 1; }

at::Tensor summed(at::Tensor y, const Group& group) {
  group.allreduce(y)->wait();
  return y;
}

struct Odd : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `compiled` once. Only a rank that `throws` must get an exception, and it must be the code's own.
template <class Compiled>
void expect_call(RankContext& ctx, Compiled& compiled, bool throws, float expected) {
  const auto call = [&] { return compiled(at::ones({2}), ctx.group()); };
  if (throws) {
    EXPECT_THROW(call(), Odd);
  } else {
    EXPECT_THAT(call(), BitEqual(at::full({2}, expected)));
  }
}

// The exception comes before or behind a read of data.
class ExceptionTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Reads, ExceptionTest, testing::Bool());

TEST_P(ExceptionTest, InTheFirstCallOfOneRank_LeavesOnlyThatRank) {
  on_agreeing_ranks([&](RankContext& ctx, CompileOptions options) {
    bool throws = false;
    auto compiled = compile(
        [&, reads = GetParam()](const at::Tensor& x, const Group& group) {
          at::Tensor y = x * 2;
          if (reads && (y.sum() > 0).item<bool>()) y = y * 3;
          y = summed(y, group);
          if (throws) throw Odd("odd");
          return y + 1;
        },
        options);
    const float expected = static_cast<float>(ctx.size()) * (GetParam() ? 6.F : 2.F) + 1;
    for (int call = 0; call < 4; ++call) {
      throws = call == 0 && is_last(ctx);
      expect_call(ctx, compiled, throws, expected);
    }
    EXPECT_EQ(compiled.stats().compiles, 1);  // in the second call, on all ranks
    EXPECT_TRUE(compiled.explain().refusal.empty());
  });
}

// Code that throws behind a collective if `throws`.
auto behind_a_collective(const bool& throws) {
  return [&throws](const at::Tensor& x, const Group& group) {
    const at::Tensor y = summed(x * 2, group);
    if (throws) throw Odd("odd");
    return y;
  };
}

TEST(RunsOnce, ExceptionWithFullgraph_LeavesOnlyThatRank) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    bool throws = false;
    options.fullgraph = true;
    auto compiled = compile(behind_a_collective(throws), options);
    for (int call = 0; call < 3; ++call) {
      throws = call == 0 && is_last(ctx);
      expect_call(ctx, compiled, throws, static_cast<float>(ctx.size()) * 2);
    }
  });
}

TEST(RunsOnce, ExceptionsOnAllRanks_AreTheRanksOwn) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    bool throws = true;
    auto compiled = compile(behind_a_collective(throws), options);
    expect_call(ctx, compiled, true, 0);
    throws = false;
    for (int call = 0; call < 2; ++call) expect_call(ctx, compiled, false, static_cast<float>(ctx.size()) * 2);
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

// With guard collectives, the other ranks also compare behind the region, whether it is compiled already or not.
TEST(RunsOnce, ExceptionInARegion_LeavesOnlyThatRank) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    if (!options.guard_collectives) return;
    bool throws = false;
    auto compiled = compile(
        [&](const at::Tensor& x, const Group& group) {
          const at::Tensor y = summed(x * 2, group);
          eager_region(
              [](const at::Tensor&, const bool& now) {
                if (now) throw Odd("odd");
              },
              y, std::ref(throws));
          return y + 1;
        },
        options);
    for (int call = 0; call < 5; ++call) {
      throws = (call == 0 || call == 3) && is_last(ctx);
      expect_call(ctx, compiled, throws, static_cast<float>(ctx.size()) * 2 + 1);
    }
  });
}

TEST(RunsOnce, TensorThatOneRankKeepsOnce_IsReal) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    at::Tensor kept;
    auto compiled = compile(
        [&](const at::Tensor& x, const Group& group) {
          const at::Tensor y = summed(x * 2, group);
          if (is_last(ctx) && !kept.defined()) kept = y * 3;
          return y;
        },
        options);
    const float expected = static_cast<float>(ctx.size()) * 2;
    for (int call = 0; call < 3; ++call) expect_call(ctx, compiled, false, expected);
    if (is_last(ctx)) {
      EXPECT_THAT(kept, BitEqual(at::full({2}, expected * 3)));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

TEST(RunsOnce, TensorsThatOneRankAlwaysKeeps_MakeAllRunEagerly) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    std::vector<at::Tensor> kept;
    auto compiled = compile(
        [&](const at::Tensor& x, const Group& group) {
          const at::Tensor y = summed(x * 2, group);
          if (is_last(ctx)) kept.push_back(y * 3);
          return y;
        },
        options);
    const float expected = static_cast<float>(ctx.size()) * 2;
    for (int call = 0; call < 4; ++call) expect_call(ctx, compiled, false, expected);
    for (const at::Tensor& each : kept) EXPECT_THAT(each, BitEqual(at::full({2}, expected * 3)));
    EXPECT_EQ(compiled.stats().eager_calls, 4);
    EXPECT_FALSE(compiled.explain().refusal.empty());
  });
}

// Gradients flow through what the other ranks have recorded.
TEST(RunsOnce, CodeThatOneRankCannotCapture_RunsEagerlyOnAll) {
  on_agreeing_ranks([](RankContext& ctx, CompileOptions options) {
    auto compiled = compile(
        [&](const at::Tensor& x, const Group& group) {
          at::Tensor y = summed(x.detach() * 2, group);
          if (is_last(ctx)) y = y + (y.data_ptr() == nullptr ? 1 : 0);
          at::Tensor z = y * x;
          return (z.sum() > 0).item<bool>() ? z * 2 : z;
        },
        options);
    const float expected = static_cast<float>(ctx.size()) * 4;
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::ones({2}).requires_grad_();
      const at::Tensor result = compiled(x, ctx.group());
      result.sum().backward();
      EXPECT_THAT(result, BitEqual(at::full({2}, expected)));
      EXPECT_THAT(x.grad(), BitEqual(at::full({2}, expected)));
    }
    EXPECT_EQ(compiled.stats().compiles, 0);
    EXPECT_EQ(compiled.stats().eager_calls, 3);
    EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("data_ptr"));
  });
}

}  // namespace
}  // namespace runs_once
