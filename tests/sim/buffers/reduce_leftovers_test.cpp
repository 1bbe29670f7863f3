// SPDX-License-Identifier: BSD-3-Clause
// Contract: after reduce(), a read of the tensor on a rank other than the root is reported, with the lines of the read
// and of the call. Reads on the root are not reported, nor are reads of values that the rank has written since the
// reduce().
#include <functional>

#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>

#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

using Then = std::function<void(RankContext& ctx, at::Tensor& value)>;

World::Body reduce_and(const Then& then) {
  return [then](RankContext& ctx) {
    auto value = at::ones({4, 4});
    ctx.group().reduce(value, 0)->wait();
    then(ctx, value);
  };
}

Report after_reduce(const Then& then) { return run_checked(reduce_and(then)); }

bool is_said(const Report& report, const std::string& who) {
  return says(report, who) && says(report, " reads the tensor of reduce #1 on group \"world\" (called at ") &&
         says(report, ", but only the root has the result: Gloo leaves partial results in the tensors of the other");
}

TEST(ReduceLeftovers, ReadByAnOperator_NamesBothLines) {
  constexpr int kLine = __LINE__ + 3;
  const auto report = run_checked([](RankContext& ctx) {
    auto loss = at::full({}, 1.0 + ctx.rank());
    ctx.group().reduce(loss, 0)->wait();
    if (loss.item<double>() > 2) ctx.group().barrier()->wait();
  });
  EXPECT_TRUE(is_said(report, "rank 1: aten::_local_scalar_dense at " + place(__FILE__, kLine + 1))) << report.headline;
  EXPECT_TRUE(says(report, "(called at " + place(__FILE__, kLine))) << report.headline;
}

TEST(ReduceLeftovers, ReadThroughAView_IsFound) {
  const auto report = after_reduce([](RankContext&, at::Tensor& value) { value.t().select(0, 2).clone(); });
  EXPECT_TRUE(is_said(report, "rank 1: aten::clone at ")) << report.headline;
}

TEST(ReduceLeftovers, NextCallThatReadsThem_IsFound) {
  const auto again = after_reduce([](RankContext& ctx, at::Tensor& value) { ctx.group().reduce(value, 0)->wait(); });
  EXPECT_TRUE(is_said(again, "rank 1: reduce #2 on group \"world\" at ")) << again.headline;
  const auto sum = after_reduce([](RankContext& ctx, at::Tensor& value) { ctx.group().allreduce(value)->wait(); });
  EXPECT_TRUE(is_said(sum, "rank 1: allreduce #2 on group \"world\" at ")) << sum.headline;
}

// All ranks divide the gradient in place. Then only the root uses the mean, or all ranks do.
TEST(ReduceLeftovers, WorkInPlace_IsNoFindingAndEndsNothing) {
  const auto use = [](bool on_all) {
    return reduce_and([=](RankContext& ctx, at::Tensor& value) {
      value.div_(2);
      if (on_all || ctx.rank() == 0) ctx.expect(value.sum().item<float>() == 16, "the mean");
    });
  };
  expect_silent(use(false));
  EXPECT_TRUE(is_said(run_checked(use(true)), "rank 1: aten::sum at "));
}

TEST(ReduceLeftovers, WhatIsWritten_MayBeRead) {
  const Then writes[] = {
      [](RankContext&, at::Tensor& value) { value.zero_(); },
      [](RankContext&, at::Tensor& value) { value.copy_(at::ones({4, 4})); },
      [](RankContext&, at::Tensor& value) { at::mul_out(value, at::ones({4, 4}), at::ones({4, 4})); },
      [](RankContext& ctx, at::Tensor& value) { ctx.group().broadcast(value, 0)->wait(); },
      [](RankContext&, at::Tensor& value) { value = at::ones({4, 4}); },
  };
  for (const auto& write : writes) {
    expect_silent(reduce_and([&](RankContext& ctx, at::Tensor& value) {
      write(ctx, value);
      value.sum().item<float>();
    }));
  }
}

TEST(ReduceLeftovers, PartThatIsWritten_MayBeReadAndNoOther) {
  expect_silent(reduce_and([](RankContext&, at::Tensor& value) {
    value.narrow(0, 1, 2).fill_(3);
    value.narrow(0, 1, 2).sum();
  }));
  const auto other = after_reduce([](RankContext&, at::Tensor& value) {
    value.narrow(0, 1, 2).fill_(3);
    value.narrow(0, 2, 2).sum();
  });
  EXPECT_TRUE(is_said(other, "rank 1: aten::sum at ")) << other.headline;
}

// The allocator soon returns the same memory again.
TEST(ReduceLeftovers, FreedMemory_IsForgotten) {
  expect_silent([](RankContext& ctx) {
    for (int step = 0; step < 3000; ++step) {
      auto value = at::ones({4});
      ctx.group().reduce(value, step % 2)->wait();
      value = at::Tensor();
      if (step % 100 == 0) at::ones({4}).sum();
    }
  });
}

}  // namespace
}  // namespace checked_programs
