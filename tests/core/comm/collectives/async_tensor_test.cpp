// SPDX-License-Identifier: BSD-3-Clause
// Contract: an AsyncTensor waits at its first use as a tensor. It has the value that the function without _async
// returns.
#include <rehearse/comm/async_tensor.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

namespace rehearse::functional {
namespace {

using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Report run(const World::Body& body) {
  Report report = World({.ranks = 4, .seed = 5}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  return report;
}

TEST(AsyncTensors, GiveWhatTheFunctionsGiveThatWait) {
  const Report report = run([](RankContext& ctx) {
    const at::Tensor x = at::arange(8, at::kDouble).view({4, 2}) + ctx.rank();
    const AsyncTensor sum = all_reduce_async(x, ctx.group()), all = all_gather_tensor_async(x.t(), ctx.group());
    const AsyncTensor part = reduce_scatter_tensor_async(x, ctx.group(), "avg");
    const AsyncTensor copy = all;
    EXPECT_TRUE(sum.is_pending());
    EXPECT_THAT(sum + 1, BitEqual(all_reduce(x, ctx.group()) + 1));
    EXPECT_FALSE(sum.is_pending());
    EXPECT_THAT(at::relu(all), BitEqual(all_gather_tensor(x.t(), ctx.group())));
    EXPECT_TRUE(copy.is_pending());
    EXPECT_TRUE(copy.wait().is_same(all.wait()));
    EXPECT_THAT(1 - part * part, BitEqual(1 - reduce_scatter_tensor(x, ctx.group(), "avg").square()));
    EXPECT_THAT(AsyncTensor(x) * 2, BitEqual(x * 2));  // no collective to wait for
  });
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST(AsyncTensors, WithoutAWait) {
  const Report report = run([](RankContext& ctx) { all_reduce_async(at::ones({2}), ctx.group()); });
  EXPECT_THAT(report.remarks,
              ElementsAre(HasSubstr("nobody waited for allreduce #1 on group \"world\" of ranks 0-3 at ")));
}

TEST(AsyncTensors, Errors) {
  run([](RankContext& ctx) {
    const at::Tensor x = at::ones({3}).requires_grad_();
    EXPECT_THAT([&] { all_reduce_async(x, ctx.group()); },
                ThrowsMessage<c10::NotImplementedError>(HasSubstr(
                    "all_reduce_async has no gradient, but the input requires one; call all_reduce(), or pass "
                    "input.detach()")));
    EXPECT_THAT([&] { reduce_scatter_tensor_async(x.detach(), ctx.group()); },
                ThrowsMessage<c10::ValueError>(HasSubstr("reduce_scatter_tensor_async: dimension 0 of the input has "
                                                         "size 3; it must be divisible by the 4 ranks of the group")));
    EXPECT_THAT([&] { all_gather_tensor_async(at::ones({}), ctx.group()); },
                ThrowsMessage<c10::ValueError>(HasSubstr("all_gather_tensor_async: the input has no dimension 0")));
    EXPECT_THAT([&] { all_gather_tensor_async(x.detach(), {}); },
                ThrowsMessage<c10::ValueError>(HasSubstr("all_gather_tensor_async: the group is null")));
    const at::NoGradGuard no_grad;
    EXPECT_THAT(all_reduce_async(x, ctx.group()) * 1, BitEqual(x.detach() * 4));
  });
}

}  // namespace
}  // namespace rehearse::functional
