// SPDX-License-Identifier: BSD-3-Clause
// Contract: what no operator does shows in the bytes that move: writes through pointers, memory that is exchanged.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "checked_world.h"

// Not of Rehearse's namespace: what stands in that is not the user's own.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

TEST(BufferPointers, Write_IsFoundAtTheTransfer) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) value.data_ptr<float>()[3] = 5;
    work->wait();
  });
  EXPECT_TRUE(says(report, R"(rank 0: the tensor of allreduce #1 on group "world" (called at )")) << report.headline;
  EXPECT_TRUE(says(report, "was written while it was under way, and by no operator of the rank")) << report.headline;
}

TEST(BufferPointers, WriteIntoALargeTensor_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::zeros({1 << 20});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) {
      for (int i = 1000; i < 100'000; ++i) value.data_ptr<float>()[i] = 5;
    }
    work->wait();
  });
  EXPECT_TRUE(says(report, "was written while it was under way")) << report.headline;
}

TEST(BufferPointers, OtherMemory_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) value.set_data(at::ones({4}));
    work->wait();
  });
  EXPECT_TRUE(says(report, "got other memory or another size while it was under way")) << report.headline;
}

// As pipelines that let go of what they have sent: the receiver's size is right, and no mismatch.
TEST(BufferPointers, OtherMemoryOfAMessage_IsNoMismatch) {
  const auto report = run_checked([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      auto output = at::ones({1024});
      auto work = ctx.group().send(output, 1);
      output.set_data(at::ones({1}));
      work->wait();
    } else if (ctx.rank() == 1) {
      auto input = at::zeros({1024});
      ctx.group().recv(input, 0)->wait();
    }
  });
  EXPECT_TRUE(says(report, "rank 0: the input of send #1 to rank 1 on group \"world\"")) << report.headline;
  EXPECT_TRUE(says(report, "got other memory or another size while it was under way")) << report.headline;
}

TEST(BufferPointers, FreedStorage_IsFoundBeforeItIsRead) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) {
      auto* const storage = value.storage().unsafeGetStorageImpl();
      storage->set_data_ptr(at::DataPtr(nullptr, at::kCPU));
      storage->set_nbytes(0);
    }
    work->wait();
  });
  EXPECT_TRUE(says(report, "got other memory or another size while it was under way")) << report.headline;
}

TEST(BufferPointers, TensorDroppedInFlight_IsKeptByTheCall) {
  const auto report = run_checked([](RankContext& ctx) {
    Work work;
    {
      auto value = at::ones({4});
      work = ctx.group().allreduce(value);
    }
    work->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

}  // namespace
}  // namespace checked_programs
