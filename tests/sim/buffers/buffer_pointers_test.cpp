// SPDX-License-Identifier: BSD-3-Clause
// Contract: the checker also finds changes that no operator makes (writes through pointers, exchanged memory). It finds
// them in the bytes that a call moves, and in the bytes that a rank has when its wait ends.
#include <chrono>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
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
  EXPECT_TRUE(says(report, "changed while the call was under way, and no operator of the rank wrote it"))
      << report.headline;
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
  EXPECT_TRUE(says(report, "changed while the call was under way")) << report.headline;
}

TEST(BufferPointers, OtherMemory_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) value.set_data(at::ones({4}));
    work->wait();
  });
  EXPECT_TRUE(says(report, "got other memory or another size while the call was under way")) << report.headline;
}

// Some pipelines release a tensor after sending it. The receiver's size is right, so this is no mismatch.
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
  EXPECT_TRUE(says(report, "got other memory or another size while the call was under way")) << report.headline;
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
  EXPECT_TRUE(says(report, "got other memory or another size while the call was under way")) << report.headline;
}

TEST(BufferPointers, TensorDroppedInFlight_IsKeptByTheCall) {
  expect_silent([](RankContext& ctx) {
    Work work;
    {
      auto value = at::ones({4});
      work = ctx.group().allreduce(value);
    }
    work->wait();
  });
}

// The data has arrived when the rank overwrites it, but the rank has not waited. In a real job the data may come later.
TEST(BufferPointers, WriteBetweenTheDataAndTheWait_IsFound) {
  const auto run = [](int way) {
    return run_checked([way](RankContext& ctx) {
      auto value = at::ones({4});
      auto work = ctx.group().allreduce(value);
      ctx.compute(std::chrono::seconds(1));
      if (ctx.rank() == 1) value.data_ptr<float>()[2] = 5;
      if (way == 0) work->wait();
      if (way == 1) ctx.expect(work->isCompleted(), "it is over");
      if (way == 2) work->getFuture()->wait();
      if (way == 3) ctx.group().barrier()->wait();  // a later call of the group
      ctx.compute(std::chrono::seconds(1));
    });
  };
  for (int way = 0; way < 4; ++way) {
    const auto report = run(way);
    EXPECT_TRUE(says(report, R"(rank 1: the tensor of allreduce #1 on group "world" (called at )")) << report.headline;
    EXPECT_TRUE(says(report, "changed after the call had moved its data and before rank 1 waited for the call"))
        << report.headline;
  }
}

TEST(BufferPointers, InputWrittenBetweenTheDataAndTheWait_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    const auto input = at::ones({4});
    std::vector<at::Tensor> outputs{at::zeros({4}), at::zeros({4})};
    auto work = ctx.group().allgather(outputs, input);
    ctx.compute(std::chrono::seconds(1));
    if (ctx.rank() == 0) input.data_ptr<float>()[0] = 5;
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 0: the input of allgather #1")) << report.headline;
}

TEST(BufferPointers, WriteAfterTheWait_IsNoFinding) {
  expect_silent([](RankContext& ctx) {
    auto value = at::ones({4});
    for (int i = 0; i < 3; ++i) {
      auto work = ctx.group().allreduce(value);
      ctx.compute(std::chrono::seconds(1));
      work->wait();
      value.data_ptr<float>()[2] = 5;
    }
  });
}

// A later call of the group writes the tensor again before the rank has waited for the first call.
TEST(BufferPointers, CallsOneAfterTheOtherOnOneTensor_AreNoFinding) {
  expect_silent([](RankContext& ctx) {
    auto value = at::ones({4});
    std::vector<Work> works;
    for (int i = 0; i < 5; ++i) {
      works.push_back(ctx.group().allreduce(i % 2 == 0 ? value : value.slice(0, 0, 3)));
      ctx.compute(std::chrono::seconds(1));
    }
    for (const auto& work : works) work->wait();
  });
}

}  // namespace
}  // namespace checked_programs
