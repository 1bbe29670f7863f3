// SPDX-License-Identifier: BSD-3-Clause
// Contract: if two ranks pass the same memory to their calls and one of them writes there, the checker names both ranks
// and calls. If both ranks only read the memory, or use separate parts of it, the checker is silent.
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

TEST(SharingCheck, SharedTensor_NamesBothRanksAndCalls) {
  const auto shared = at::ones({4});
  const auto report = run_checked([&](RankContext& ctx) { ctx.group().allreduce(shared)->wait(); });
  EXPECT_TRUE(says(report, "ranks 0 and 1 use the same memory, which processes do not share: ")) << report.headline;
  EXPECT_TRUE(says(report, R"(rank 0 writes it in allreduce #1 on group "world")")) << report.headline;
  EXPECT_TRUE(says(report, R"(rank 1 writes it in allreduce #1 on group "world")")) << report.headline;
}

TEST(SharingCheck, SharedMemoryInStoragesOfTheirOwn_IsFound) {
  static float global[8] = {};
  const auto report = run_checked(
      [&](RankContext& ctx) { ctx.group().allreduce(at::from_blob(global + ctx.rank(), {4}, at::kFloat))->wait(); });
  EXPECT_TRUE(says(report, "ranks 0 and 1 use the same memory")) << report.headline;
}

TEST(SharingCheck, OneAfterTheOther_IsFoundByTheirStorage) {
  const auto shared = at::ones({4});
  const auto report = run_checked([&](RankContext& ctx) {
    const auto alone = ctx.new_group({0}, "alone");
    if (ctx.rank() == 0) alone.allreduce(shared)->wait();
    ctx.group().barrier()->wait();
    auto output = at::zeros({4});
    const auto input = ctx.rank() == 1 ? shared : at::ones({4});
    std::vector<at::Tensor> outputs{output, at::zeros({4})};
    ctx.group().allgather(outputs, input)->wait();
  });
  EXPECT_TRUE(says(report, R"(rank 0 writes it in allreduce #1 on group "alone")")) << report.headline;
  EXPECT_TRUE(says(report, R"(rank 1 reads it in allgather #2 on group "world")")) << report.headline;
}

TEST(SharingCheck, ReadByAll_IsNoFinding) {
  const auto shared = at::ones({4});
  expect_silent([&](RankContext& ctx) {
    std::vector<at::Tensor> outputs{at::zeros({4}), at::zeros({4})};
    for (int i = 0; i < 3; ++i) ctx.group().allgather(outputs, shared)->wait();
  });
}

TEST(SharingCheck, RowsOfOneTensor_AreNoFinding) {
  const auto all = at::ones({4, 4});
  expect_silent(
      [&](RankContext& ctx) {
        for (int i = 0; i < 3; ++i) ctx.group().allreduce(all[ctx.rank()])->wait();
      },
      checked(4));
}

// Freed memory may come back as memory of another rank.
TEST(SharingCheck, FreedMemory_IsForgotten) {
  expect_silent(
      [](RankContext& ctx) {
        for (int i = 0; i < 1000; ++i) {
          auto value = at::ones({64});
          ctx.group().allreduce(value);
        }
        ctx.group().barrier()->wait();
      },
      checked(4));
}

TEST(SharingCheck, Off_LetsItPass) {
  const auto shared = at::ones({4});
  auto options = checked();
  options.check_sharing = false;
  EXPECT_EQ(run_checked([&](RankContext& ctx) { ctx.group().allreduce(shared)->wait(); }, options).verdict,
            Verdict::ok);
}

}  // namespace
}  // namespace checked_programs
