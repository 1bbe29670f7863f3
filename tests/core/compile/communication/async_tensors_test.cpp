// SPDX-License-Identifier: BSD-3-Clause
// Contract: compiled code takes, makes and returns tensors whose collective is in flight, and waits at their first use.
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/async_tensor.h>
#include <rehearse/compile/compile.h>
#include <rehearse/graph/text.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "kit/boxed_op.h"

namespace rehearse::compiler::async_tensors {
namespace {

using functional::all_reduce_async;
using functional::AsyncTensor;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_silent(const World::Body& body) {
  const Report report = World({.ranks = 2, .seed = 3}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  EXPECT_THAT(report.remarks, IsEmpty());
}

std::int64_t waits_in(const std::string& text) {
  std::int64_t waits = 0;
  for (auto at = text.find("wait_tensor.default\""); at != std::string::npos;
       at = text.find("wait_tensor.default\"", at + 1))
    ++waits;
  return waits;
}

// The code before the first use runs while the ranks reduce.
TEST(CompiledAsyncTensors, AreWaitedForAtTheirFirstUse) {
  for (const char* backend : {"eager", "aot_eager"}) {
    expect_silent([backend](RankContext& ctx) {
      auto compiled = compile(
          [](const AsyncTensor& sum, const at::Tensor& w) {
            const at::Tensor sine = w.sin();
            return sine * sum + sum;
          },
          {.backend = backend, .dynamic = true, .fullgraph = true});
      for (const std::int64_t length : {10, 12, 10}) {
        const at::Tensor x = at::arange(length, at::kDouble) + ctx.rank(), total = 2 * x + 1 - 2 * ctx.rank();
        const at::Tensor w = at::ones({length}, at::kDouble).requires_grad_();
        const AsyncTensor sum = all_reduce_async(x, ctx.group());
        const at::Tensor result = compiled(sum, w);
        EXPECT_THAT(result, BitEqual(w.sin() * total + total));
        EXPECT_TRUE(sum.is_pending());  // the caller's object has not waited
        result.sum().backward();
        EXPECT_THAT(w.grad(), BitEqual(w.detach().cos() * total));
      }
      EXPECT_EQ(compiled.stats().compiles, 1);
      const std::string graph = compiled.explain().pieces().front().text;
      EXPECT_EQ(waits_in(graph), 1);
      EXPECT_LT(graph.find("aten.sin"), graph.find("wait_tensor.default"));
    });
  }
}

// A guard checks whether the argument is still pending. If it is not, another graph serves the call, without a wait.
TEST(CompiledAsyncTensors, AreGuardedByWhetherTheyArePending) {
  expect_silent([](RankContext& ctx) {
    auto compiled = compile([](AsyncTensor& sum) { return sum + 1; }, {.fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      AsyncTensor sum = all_reduce_async(at::ones({3}), ctx.group());
      EXPECT_THAT(compiled(sum), BitEqual(at::full({3}, 3.0)));
      EXPECT_FALSE(sum.is_pending());
      EXPECT_THAT(compiled(sum), BitEqual(at::full({3}, 3.0)));
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
}

TEST(CompiledAsyncTensors, AreResults) {
  for (const char* backend : {"eager", "aot_eager"}) {
    expect_silent([backend](RankContext& ctx) {
      auto compiled = compile(
          [](const at::Tensor& x, const Group& group) {
            const AsyncTensor sum = all_reduce_async(x, group), twice = all_reduce_async(x * 2, group);
            const at::Tensor meanwhile = x.exp();
            return std::tuple(meanwhile + sum, twice);
          },
          {.backend = backend, .fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = at::ones({3}) * (ctx.rank() + call);
        const auto [found, twice] = compiled(x, ctx.group());
        const at::Tensor total = at::ones({3}) * (1 + 2 * call);
        EXPECT_THAT(found, BitEqual(x.exp() + total));
        EXPECT_TRUE(twice.is_pending());
        EXPECT_THAT(twice + 0, BitEqual(total * 2));
      }
      EXPECT_EQ(compiled.stats().compiles, 1);
    });
  }
}

// If a graph changes an argument, aot_eager copies the argument before it runs the graph. An argument whose collective
// is in flight must not be copied before the wait. So a graph that changes such an argument runs under eager autograd.
TEST(CompiledAsyncTensors, AreChangedAfterTheWait) {
  for (const char* backend : {"eager", "aot_eager"}) {
    expect_silent([backend](RankContext& ctx) {
      auto compiled = compile(
          [](const AsyncTensor& sum, const at::Tensor& w) {
            at::Tensor changed = sum;
            changed.mul_(w);
            return changed + 1;
          },
          {.backend = backend, .fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor w = at::full({3}, 5.0).requires_grad_();
        const AsyncTensor sum = all_reduce_async(at::ones({3}), ctx.group());
        const at::Tensor result = compiled(sum, w);
        EXPECT_THAT(result, BitEqual(at::full({3}, 11.0)));
        result.sum().backward();
        EXPECT_THAT(w.grad(), BitEqual(at::full({3}, 2.0)));
      }
      if (backend == std::string("aot_eager")) {
        EXPECT_THAT(compiled.explain().entries.at(0).graphs.at(0).eager_because,
                    HasSubstr("it changes an argument, and waits for a collective that was launched in front of it"));
      }
    });
  }
}

// The same for a wait for a list, of which one collective is the caller's and the other one the graph's.
TEST(CompiledAsyncTensors, AreChangedAfterAWaitForSeveral) {
  if (!c10::Dispatcher::singleton().findSchema({"_c10d_functional::wait_tensors", ""}))
    GTEST_SKIP() << "LibTorch has this operator since 2.15";
  expect_silent([](RankContext& ctx) {
    using Tensors = std::vector<at::Tensor>;
    const test::BoxedOp<at::Tensor(const at::Tensor&, std::string, std::string)> reduce("_c10d_functional::all_reduce");
    auto compiled = compile(
        [reduce](const at::Tensor& sum, const at::Tensor& w, const Group& group) {
          const test::BoxedOp<Tensors(Tensors)> wait_all("_c10d_functional::wait_tensors");
          Tensors waited = wait_all.call({sum, reduce.call(at::ones({3}), "sum", group->getGroupName())});
          waited[0].mul_(w);
          return waited[0] + waited[1];
        },
        {.backend = "aot_eager", .fullgraph = true});
    const at::Tensor w = at::full({3}, 5.0).requires_grad_();
    const at::Tensor sum = reduce.call(at::ones({3}), "sum", ctx.group()->getGroupName());
    EXPECT_THAT(compiled(sum, w, ctx.group()), BitEqual(at::full({3}, 12.0)));
    EXPECT_THAT(compiled.explain().entries.at(0).graphs.at(0).eager_because,
                HasSubstr("it changes an argument, and waits for a collective that was launched in front of it"));
  });
}

}  // namespace
}  // namespace rehearse::compiler::async_tensors
