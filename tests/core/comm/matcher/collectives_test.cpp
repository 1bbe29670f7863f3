// SPDX-License-Identifier: BSD-3-Clause
// Contract: each c10d call reaches the fabric once, when all ranks have made it. The fabric gets the call in the form
// that operation.h documents.
#include "core/comm/test_world.h"
#include "kit/pre_mul_sum.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;

using c10d::OpType;
using testing::_;
using testing::ElementsAre;

struct Launched {
  OpType type = OpType::UNKNOWN;
  std::uint64_t sequence = 0;
  std::string group;
  std::vector<int> ranks;
  std::vector<Operation> calls;
};

class Collectives : public CommTest {
 protected:
  Collectives() {
    ON_CALL(fabric, launch).WillByDefault([this](const Transfer& transfer, Completion& done) {
      Launched seen{transfer.type, transfer.sequence, transfer.group->name, transfer.group->ranks, {}};
      for (const auto* call : transfer.calls) seen.calls.push_back(*call);
      launched.push_back(std::move(seen));
      done.on_complete();
    });
  }

  // Runs one call on two ranks and returns the fabric's transfer.
  Launched launch(const std::function<WorkPtr(int rank, const ProcessGroup& group)>& call) {
    launched.clear();
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) { EXPECT_TRUE(call(rank, group)->wait()); });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_EQ(launched.size(), 1u);
    return launched.empty() ? Launched{} : launched.front();
  }

  std::vector<Launched> launched;
};

at::Tensor of(int rank, std::vector<std::int64_t> sizes) { return at::full(sizes, rank); }

std::vector<at::Tensor> list_of(int rank, int length, std::vector<std::int64_t> sizes) {
  std::vector<at::Tensor> list;
  for (int i = 0; i < length; ++i) list.push_back(at::full(sizes, 10 * rank + i));
  return list;
}

TEST_F(Collectives, Allreduce_IsInPlaceWithItsReduceOp) {
  const auto seen = launch(
      [](int rank, const ProcessGroup& group) { return allreduce(group, of(rank, {2, 3}), c10d::ReduceOp::MAX); });
  EXPECT_EQ(seen.type, OpType::ALLREDUCE);
  EXPECT_EQ(seen.sequence, 1u);
  EXPECT_EQ(seen.group, "world");
  EXPECT_THAT(seen.ranks, ElementsAre(0, 1));
  for (int rank = 0; rank < 2; ++rank) {
    const auto& call = seen.calls.at(static_cast<std::size_t>(rank));
    EXPECT_EQ(call.reduce_op, c10d::ReduceOp::MAX);
    EXPECT_TRUE(call.inputs[0].is_same(call.outputs[0]));
    EXPECT_EQ(call.inputs[0].flatten()[0].item<int>(), rank);
    EXPECT_EQ(call.timeout, std::chrono::minutes(30));
  }
}

TEST_F(Collectives, PremulSum_CarriesItsFactor) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    return allreduce(group, of(rank, {1}), rehearse::test::pre_mul_sum(0.5));
  });
  const auto& call = seen.calls.at(0);
  EXPECT_EQ(call.reduce_op, c10d::ReduceOp::PREMUL_SUM);
  const auto* factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(call.reduce_supplement.get());
  ASSERT_NE(factor, nullptr);
  EXPECT_EQ(factor->double_factor, 0.5);
}

TEST_F(Collectives, Broadcast_HasItsRoot) {
  const auto seen = launch([](int rank, const ProcessGroup& group) { return broadcast(group, of(rank, {2}), 1); });
  EXPECT_EQ(seen.type, OpType::BROADCAST);
  EXPECT_EQ(seen.calls.at(0).root, 1);
}

TEST_F(Collectives, Reduce_HasRootAndReduceOp) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{of(rank, {2})};
    c10d::ReduceOptions options;
    options.rootRank = 1;
    options.reduceOp = c10d::ReduceOp::PRODUCT;
    return group->reduce(tensors, options);
  });
  EXPECT_EQ(seen.type, OpType::REDUCE);
  EXPECT_EQ(seen.calls.at(1).root, 1);
  EXPECT_EQ(seen.calls.at(1).reduce_op, c10d::ReduceOp::PRODUCT);
}

TEST_F(Collectives, Allgather_TakesUnevenSizesAndReturnsAllOutputs) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{of(rank, {rank + 1})};
    std::vector<std::vector<at::Tensor>> outputs{{of(7, {1}), of(8, {2})}};
    const WorkPtr work = group->allgather(outputs, inputs);
    work->wait();
    EXPECT_EQ(work->result().size(), 2u);
    return work;
  });
  EXPECT_EQ(seen.type, OpType::ALLGATHER);
  EXPECT_EQ(seen.calls.at(1).inputs[0].numel(), 2);
  EXPECT_EQ(seen.calls.at(0).outputs.size(), 2u);
}

TEST_F(Collectives, AllgatherBase_HasOneOutput) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    auto output = of(rank, {4}), input = of(rank, {2});
    return group->_allgather_base(output, input);
  });
  EXPECT_EQ(seen.type, OpType::_ALLGATHER_BASE);
  EXPECT_EQ(seen.calls.at(0).outputs[0].numel(), 4);
}

TEST_F(Collectives, Gather_HasOutputsOnTheRootOnly) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{of(rank, {2})};
    std::vector<std::vector<at::Tensor>> outputs;
    if (rank == 1) outputs.push_back(list_of(rank, 2, {2}));
    c10d::GatherOptions options;
    options.rootRank = 1;
    return group->gather(outputs, inputs, options);
  });
  EXPECT_EQ(seen.type, OpType::GATHER);
  EXPECT_EQ(seen.calls.at(0).outputs.size(), 0u);
  EXPECT_EQ(seen.calls.at(1).outputs.size(), 2u);
}

TEST_F(Collectives, Scatter_HasInputsOnTheRootOnly) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{of(rank, {2})};
    std::vector<std::vector<at::Tensor>> inputs;
    if (rank == 0) inputs.push_back(list_of(rank, 2, {2}));
    return group->scatter(outputs, inputs);
  });
  EXPECT_EQ(seen.type, OpType::SCATTER);
  EXPECT_EQ(seen.calls.at(0).inputs.size(), 2u);
  EXPECT_EQ(seen.calls.at(1).inputs.size(), 0u);
}

TEST_F(Collectives, ReduceScatter_TakesUnevenSizes) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{of(rank, {rank + 1})};
    std::vector<std::vector<at::Tensor>> inputs{{of(rank, {1}), of(rank, {2})}};
    return group->reduce_scatter(outputs, inputs);
  });
  EXPECT_EQ(seen.type, OpType::REDUCE_SCATTER);
  EXPECT_EQ(seen.calls.at(1).inputs[1].numel(), 2);
}

TEST_F(Collectives, ReduceScatterBase_HasOneInput) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    auto output = of(rank, {2}), input = of(rank, {4});
    return group->_reduce_scatter_base(output, input);
  });
  EXPECT_EQ(seen.type, OpType::_REDUCE_SCATTER_BASE);
  EXPECT_EQ(seen.calls.at(0).reduce_op, c10d::ReduceOp::SUM);
}

TEST_F(Collectives, AlltoallBase_CountsSplitsInElements) {
  const auto even =
      launch([](int rank, const ProcessGroup& group) { return alltoall(group, of(rank, {4, 3}), of(rank, {4, 3})); });
  EXPECT_EQ(even.type, OpType::ALLTOALL_BASE);
  EXPECT_THAT(even.calls.at(0).input_splits, ElementsAre(6, 6));
  EXPECT_THAT(even.calls.at(0).output_splits, ElementsAre(6, 6));

  // Rank 0 sends {1, 2} rows and gets {1, 0}; rank 1 sends {0, 3} and gets {2, 3}.
  const auto uneven = launch([](int rank, const ProcessGroup& group) {
    return rank == 0 ? alltoall(group, of(0, {1, 2}), of(0, {3, 2}), {1, 0}, {1, 2})
                     : alltoall(group, of(1, {5, 2}), of(1, {3, 2}), {2, 3}, {0, 3});
  });
  EXPECT_THAT(uneven.calls.at(1).input_splits, ElementsAre(0, 6));
  EXPECT_THAT(uneven.calls.at(1).output_splits, ElementsAre(4, 6));
}

TEST_F(Collectives, Alltoall_TakesTensorsOfAnySize) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{of(0, {1 + rank}), of(0, {3 + rank})};
    std::vector<at::Tensor> inputs{of(0, {1 + 2 * rank}), of(0, {2 + 2 * rank})};
    return group->alltoall(outputs, inputs);
  });
  EXPECT_EQ(seen.type, OpType::ALLTOALL);
  EXPECT_EQ(seen.calls.at(0).inputs.size(), 2u);
}

TEST_F(Collectives, Barrier_HasNoTensors) {
  const auto seen = launch([](int, const ProcessGroup& group) { return group->barrier(); });
  EXPECT_EQ(seen.type, OpType::BARRIER);
  EXPECT_TRUE(seen.calls.at(0).inputs.empty());
}

TEST_F(Collectives, EmptyTensors_AreFine) {
  const auto seen = launch([](int, const ProcessGroup& group) { return allreduce(group, at::empty({0})); });
  EXPECT_EQ(seen.calls.at(0).inputs[0].numel(), 0);
}

// One rank may be many calls ahead. Each call matches the calls of other ranks with the same number, not their latest
// calls.
TEST_F(Collectives, AsyncCalls_MatchInOrder) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    std::vector<WorkPtr> works;
    for (int i = 1; i <= 50; ++i) {
      works.push_back(allreduce(group, of(rank, {i})));
      if (rank == 1) exec::this_rank::yield();
      if (rank == 2) works.back()->wait();
    }
    for (const auto& work : works) EXPECT_TRUE(work->wait());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  ASSERT_EQ(launched.size(), 50u);
  for (std::size_t i = 0; i < launched.size(); ++i) {
    EXPECT_EQ(launched[i].sequence, i + 1);
    for (const auto& call : launched[i].calls) EXPECT_EQ(call.inputs[0].numel(), static_cast<std::int64_t>(i + 1));
  }
}

class Ends : public CommTest {};

// Calls of a group end in order, as on the group's NCCL stream, even if the fabric finishes a later one first.
TEST_F(Ends, OfAGroup_AreInOrder) {
  const auto outcome = run(1, [&](int, const ProcessGroup& group) {
    const auto start = clock.now();
    const auto call = [&](VirtualDuration takes, const auto& make) {
      fabric.takes = takes;
      return make(group);
    };
    const auto sum = [](const ProcessGroup& of) { return allreduce(of, at::ones({2})); };
    const auto slow = call(9us, sum), quick = call(2us, sum), at_once = call(0us, sum);
    const auto barrier = call(3us, [](const ProcessGroup& of) { return of->barrier(); });
    at_once->wait();
    EXPECT_EQ(clock.now() - start, 9us);
    EXPECT_TRUE(slow->isCompleted() && quick->isCompleted() && !barrier->isCompleted());
    barrier->wait();
    EXPECT_EQ(clock.now() - start, 12us) << "a barrier begins when those before it have ended";
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// A call that has failed does not delay later ones.
TEST_F(Ends, BehindOneThatTimesOut_AreAtItsEnd) {
  const auto outcome = run(1, [&](int, const ProcessGroup& group) {
    const auto start = clock.now();
    fabric.takes = 9ms;
    group->setTimeout(std::chrono::milliseconds(5));
    const auto slow = allreduce(group, at::ones({2}));
    group->setTimeout(std::chrono::milliseconds(50));
    fabric.takes = 2us;
    const auto quick = allreduce(group, at::ones({2}));
    quick->wait();
    EXPECT_EQ(clock.now() - start, 5ms);
    EXPECT_THROW(slow->wait(), TimeoutError);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Collectives, TimeoutOfCall_OverridesThatOfGroup) {
  const auto seen = launch([](int rank, const ProcessGroup& group) {
    if (rank == 0) group->setTimeout(std::chrono::milliseconds(5));
    c10d::AllreduceOptions options;
    if (rank == 1) options.timeout = std::chrono::milliseconds(7);
    std::vector<at::Tensor> tensors{of(rank, {1})};
    return group->allreduce(tensors, options);
  });
  EXPECT_EQ(seen.calls.at(0).timeout, std::chrono::milliseconds(5));
  EXPECT_EQ(seen.calls.at(1).timeout, std::chrono::milliseconds(7));
}

TEST_F(Collectives, WhatTheFabricRejects_FailsTheCallOnThatRank) {
  ON_CALL(fabric, prepare).WillByDefault([](const Operation& call, const GroupIdentity& group, int) {
    EXPECT_EQ(group.size(), 2);
    TORCH_CHECK(call.inputs[0].scalar_type() != at::kHalf, "no float16 here");
  });
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    EXPECT_THROW(allreduce(group, at::zeros({1}, at::kHalf)), c10::Error);
    allreduce(group, at::zeros({1}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  EXPECT_EQ(launched.at(0).sequence, 1u);
}

TEST_F(Collectives, Backend_NamesItselfAndItsGroup) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    EXPECT_EQ(backend->getBackendName(), "rehearse");
    EXPECT_EQ(group->getGroupName(), "world");
    const auto options = backend->getBackendOptions();
    EXPECT_EQ(options->group_name, "world");
    EXPECT_THAT(options->global_ranks_in_group, ElementsAre(0u, 1u));
    EXPECT_EQ(backend->getSequenceNumberForGroup(), 0u);
    allreduce(group, of(rank, {1}))->wait();
    EXPECT_EQ(backend->getSequenceNumberForGroup(), 1u);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
