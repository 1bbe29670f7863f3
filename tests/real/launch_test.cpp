// SPDX-License-Identifier: BSD-3-Clause
// Contract: which calls go to NCCL together, on which streams, when waits end, and how long memory is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "bit_equal.h"
#include "real_world.h"

namespace rehearse::real {
namespace {

using comm::ProcessGroup;
using exec::this_rank::sleep_for;
using rehearse::test::BitEqual;

class Launch : public RealWorld {
 protected:
  void expect_returned(int ranks, const Body& body) {
    const auto outcome = run(ranks, body);
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }
};

comm::WorkPtr allreduce_now(const ProcessGroup& group, const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  return group->allreduce(tensors, options);
}

// One NCCL group makes the communicators, another one launches.
TEST_F(Launch, SmallAsynchronousCalls_GoOutTogether) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    std::vector<comm::WorkPtr> works;
    for (int i = 0; i < 10; ++i) works.push_back(comm::allreduce(group, on_device(at::ones({2}), rank)));
    for (const auto& work : works) EXPECT_TRUE(work->wait());
  });
  EXPECT_EQ(nccl->groups_ended(), 1 + 1);
}

// NCCL does not keep calls within a group in order.
TEST_F(Launch, CallsWithTheSameMemory_GoOutOneAfterTheOther) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    const auto whole = on_device(at::full({4}, rank + 1.0f), rank);
    const auto apart = on_device(at::ones({2}), rank);
    const std::vector<comm::WorkPtr> works{comm::broadcast(group, whole, 0), comm::allreduce(group, whole),
                                           comm::allreduce(group, apart)};
    for (const auto& work : works) EXPECT_TRUE(work->wait());
    sleep_for(kTick);
    EXPECT_THAT(on_host(whole), BitEqual(at::full({4}, 2.0f)));
    EXPECT_THAT(on_host(apart), BitEqual(at::full({2}, 2.0f)));
  });
  EXPECT_EQ(nccl->groups_ended(), 1 + 2);
}

TEST_F(Launch, LargeCalls_GoOutAtOnce) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    std::vector<comm::WorkPtr> works;
    for (int i = 0; i < 3; ++i) works.push_back(comm::allreduce(group, on_device(at::ones({16 << 10}), rank)));
    for (const auto& work : works) EXPECT_TRUE(work->wait());
  });
  EXPECT_EQ(nccl->groups_ended(), 1 + 3);
}

TEST_F(Launch, Wait_EndsAtTheLaunchAndIsCompletedAtTheEnd) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    auto& cuda = FakeCuda::instance();
    cuda.held = true;
    const auto tensor = on_device(at::ones({2}), rank);
    const auto work = comm::allreduce(group, tensor);
    EXPECT_TRUE(work->wait());
    EXPECT_FALSE(work->isCompleted());
    EXPECT_THAT(on_host(tensor), BitEqual(at::ones({2})));
    sleep_for(kTick);
    cuda.held = false;
    sleep_for(kTick);
    EXPECT_TRUE(work->isCompleted());
    EXPECT_THAT(on_host(tensor), BitEqual(at::full({2}, 2.0f)));
  });
}

// The caller's earlier work comes before the call, and work after its wait comes after the call.
TEST_F(Launch, AsynchronousCall_IsOrderedWithTheCallersStream) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    auto& cuda = FakeCuda::instance();
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(rank));
    const auto tensor = on_device(at::zeros({1}), rank);
    auto* const value = static_cast<float*>(tensor.mutable_data_ptr());
    cuda.held = true;
    cuda.enqueue(cuda.getStream(device), [=] { return *value = 5, true; });
    const auto work = comm::allreduce(group, tensor);
    EXPECT_TRUE(work->wait());
    float seen = 0;
    cuda.enqueue(cuda.getStream(device), [&seen, value] { return seen = *value, true; });
    sleep_for(kTick);
    cuda.held = false;
    sleep_for(kTick);
    EXPECT_EQ(seen, 10);
  });
}

TEST_F(Launch, SynchronousCall_RunsOnTheCallersStream) {
  std::vector<cudaStream_t> streams;
  ON_CALL(*nccl, all_reduce)
      .WillByDefault([&](const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                         ncclComm_t comm, cudaStream_t stream) {
        streams.push_back(stream);
        return nccl->FakeNccl::all_reduce(send, receive, count, type, op, comm, stream);
      });
  expect_returned(1, [](int, const ProcessGroup& group) {
    EXPECT_TRUE(allreduce_now(group, on_device(at::ones({1}), 0))->wait());
    EXPECT_TRUE(comm::allreduce(group, on_device(at::ones({1}), 0))->wait());
  });
  const auto& cuda = FakeCuda::instance();
  const auto* const own = cuda.getStreamNativeHandle(cuda.getStream({c10::kCUDA, 0}));
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(static_cast<const void*>(streams[0]), own);
  EXPECT_NE(static_cast<const void*>(streams[1]), own);
}

TEST_F(Launch, Barrier_EndsWhenAllDevicesHaveComeToIt) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    auto& cuda = FakeCuda::instance();
    if (rank == 1) cuda.hung = 1;
    const auto barrier = group->barrier();
    sleep_for(2 * kTick);
    EXPECT_FALSE(barrier->isCompleted());
    cuda.hung.reset();
    EXPECT_TRUE(barrier->wait());
    EXPECT_TRUE(barrier->isCompleted());
  });
}

TEST_F(Launch, Tensors_LiveUntilTheDeviceIsDone) {
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    auto& cuda = FakeCuda::instance();
    cuda.held = true;
    auto tensor = on_device(at::ones({2}), rank);
    const c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> kept(tensor.getIntrusivePtr());
    comm::allreduce(group, tensor)->wait();
    tensor.reset();
    sleep_for(kTick);
    EXPECT_FALSE(kept.expired());
    cuda.held = false;
    sleep_for(kTick);
    EXPECT_TRUE(kept.expired());
  });
}

TEST_F(Launch, TimedCalls_KnowTheirDuration) {
  devices.timed = true;
  expect_returned(2, [](int rank, const ProcessGroup& group) {
    const auto work = comm::allreduce(group, on_device(at::ones({2}), rank));
    EXPECT_TRUE(work->wait());
    sleep_for(kTick);
    EXPECT_GT(work->getDuration(), 0);
  });
}

TEST_F(Launch, SubGroup_IsSplitFromItsParentsCommunicators) {
  expect_returned(3, [this](int rank, const ProcessGroup& group) {
    EXPECT_TRUE(comm::allreduce(group, on_device(at::ones({2}), rank))->wait());
    if (rank == 1) return;
    const auto part = group->getBackend(c10::kCUDA)->split({}, {0, 2}, {});
    const auto tensor = on_device(at::full({1}, static_cast<float>(rank)), rank);
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = 1;
    part->broadcast(tensors, options)->wait();
    sleep_for(kTick);
    EXPECT_EQ(on_host(tensor).item<float>(), 2);
  });
  const auto all = nccl->happened();
  EXPECT_EQ(std::count(all.begin(), all.end(), "split 0"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "split 1"), 1);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.starts_with("init"); }), 3);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.starts_with("destroy"); }), 5);
}

}  // namespace
}  // namespace rehearse::real
