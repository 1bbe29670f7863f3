// SPDX-License-Identifier: BSD-3-Clause
// Contract: coalesced calls reach the fabric as one transfer with a part for each operation. startCoalescing() and
// endCoalescing() combine all calls between them into one Work.
#include "core/comm/backend/coalescing_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using c10d::OpType;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;

std::vector<OpType> types_of(const std::vector<Operation>& parts) {
  std::vector<OpType> types;
  for (const auto& part : parts) types.push_back(part.type);
  return types;
}

TEST_F(Coalescing, AllreduceCoalesced_HasAPartForEachTensor) {
  run_on_two([](int, const ProcessGroup& group) {
    Tensors tensors{at::ones({2}), at::ones({3, 1}), at::ones({0})};
    c10d::AllreduceCoalescedOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    const auto work = group->allreduce_coalesced(tensors, options);
    EXPECT_EQ(work->retrieveOpType(), OpType::ALLREDUCE_COALESCED);
    work->wait();
    EXPECT_TRUE(work->result().at(1).is_same(tensors[1]));
    return work;
  });
  EXPECT_THAT(types, ElementsAre(OpType::ALLREDUCE_COALESCED));
  EXPECT_EQ(types_of(calls.at(1).parts), std::vector<OpType>(3, OpType::ALLREDUCE));
  EXPECT_EQ(calls.at(0).parts[1].reduce_op, c10d::ReduceOp::MAX);
  EXPECT_EQ(calls.at(0).outputs.size(), 3u);
}

TEST_F(Coalescing, AllgatherCoalesced_TakesEachRanksListApart) {
  run_on_two([](int, const ProcessGroup& group) {
    Tensors inputs{at::ones({2}), at::ones({5})};
    Lists outputs{{at::zeros({2}), at::zeros({5})}, {at::zeros({2}), at::zeros({5})}};
    return group->allgather_coalesced(outputs, inputs);
  });
  ASSERT_EQ(calls.at(0).parts.size(), 2u);
  EXPECT_EQ(calls.at(0).parts[1].type, OpType::ALLGATHER);
  EXPECT_EQ(calls.at(0).parts[1].outputs.size(), 2u);
  EXPECT_EQ(calls.at(0).parts[1].outputs[0].numel(), 5);
}

TEST_F(Coalescing, TensorForms_AreBaseCalls) {
  run_on_two([](int, const ProcessGroup& group) {
    Tensors inputs{at::ones({2}), at::ones({1})}, outputs{at::zeros({4}), at::zeros({2})};
    EXPECT_TRUE(group->allgather_into_tensor_coalesced(outputs, inputs)->wait());
    return group->reduce_scatter_tensor_coalesced(inputs, outputs);
  });
  EXPECT_THAT(types, ElementsAre(OpType::COALESCED, OpType::COALESCED));
  EXPECT_EQ(types_of(calls.at(0).parts), std::vector<OpType>(2, OpType::_ALLGATHER_BASE));
  EXPECT_EQ(types_of(calls.at(2).parts), std::vector<OpType>(2, OpType::_REDUCE_SCATTER_BASE));
  EXPECT_EQ(name_of(calls.at(0)), "allgather_into_tensor_coalesced");
  EXPECT_EQ(name_of(calls.at(2)), "reduce_scatter_tensor_coalesced");
}

// The collectives become one transfer; sends and receives stay separate. The rank gets one Work, which is complete when
// all of these calls are complete.
TEST_F(Coalescing, StartAndEnd_MakeOneOfAllCallsBetween) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const int peer = 1 - rank;
    group->startCoalescing(at::kCPU);
    const auto first = allreduce(group, at::ones({2}));
    EXPECT_EQ(send(group, at::ones({1}), peer), first);
    const auto received = at::zeros({1});
    recv(group, received, peer);
    Tensors tensors{at::ones({1}), at::ones({4})};
    group->allreduce_coalesced(tensors);
    broadcast(group, at::ones({3}));
    const auto work = group->endCoalescing(at::kCPU);
    EXPECT_EQ(work, first);
    EXPECT_TRUE(work->wait());
    EXPECT_TRUE(work->isCompleted());
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(work->result().size(), 5u);
    EXPECT_TRUE(work->result().back().is_same(received));
    work->getFuture()->wait();
    EXPECT_EQ(work->getFuture()->value().toTensorVector().size(), 5u);
    work->getFutureResult()->wait();
    EXPECT_EQ(work->getFutureResult()->value().toInt(), 0);
    EXPECT_EQ(work->getSequencenumber(), 1u);
    EXPECT_EQ(work->getDuration(), 0.0f);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(types, testing::UnorderedElementsAre(OpType::COALESCED, OpType::SEND, OpType::SEND));
  EXPECT_THAT(types_of(calls.at(0).parts),
              ElementsAre(OpType::ALLREDUCE, OpType::ALLREDUCE, OpType::ALLREDUCE, OpType::BROADCAST));
}

TEST_F(Coalescing, NothingBetween_NoWork) {
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    EXPECT_EQ(group->endCoalescing(at::kCPU), nullptr);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(types.empty());
}

TEST_F(Coalescing, MisuseOfStartAndEnd_IsAnError) {
  const auto outcome = run(2, [&](int, const ProcessGroup& group) {
    EXPECT_THAT(refusal_of([&] { group->endCoalescing(at::kCPU); }), HasSubstr("there was no startCoalescing()"));
    group->startCoalescing(at::kCPU);
    EXPECT_THAT(refusal_of([&] { group->startCoalescing(at::kCPU); }),
                HasSubstr("called twice without endCoalescing()"));
    EXPECT_THAT(refusal_of([&] { group->monitoredBarrier({}); }), HasSubstr("it blocks, so it cannot be coalesced"));
    EXPECT_THAT(refusal_of([&] { broadcast(group, at::ones({1}), 7); }), HasSubstr("invalid root rank: 7"));
    const auto work = group->barrier();
    EXPECT_THAT(refusal_of([&] { work->wait(); }), HasSubstr("before endCoalescing() has launched them"));
    EXPECT_THAT(refusal_of([&] { work->isCompleted(); }), HasSubstr("before endCoalescing() has launched them"));
    EXPECT_TRUE(group->endCoalescing(at::kCPU)->wait());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Coalescing, GivenTimeout_IsForAllOfIt) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(1s);
    group->startCoalescing(at::kCPU);
    recv(group, at::zeros({1}), 1);
    recv(group, at::zeros({1}), 1, 4);
    const auto work = group->endCoalescing(at::kCPU);
    EXPECT_THROW(work->wait(20ms), TimeoutError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 20ms);
    EXPECT_EQ(work->getFutureResult()->completed(), false);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Coalescing, ThrowingCallback_IsItsRanksFailure) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    send(group, at::ones({1}), 1 - rank);
    recv(group, at::zeros({1}), 1 - rank);
    const auto work = group->endCoalescing(at::kCPU);
    if (rank == 0) work->getFuture()->addCallback([](auto&) { throw std::runtime_error("thrown by a callback"); });
    work->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::rank_failed);
  EXPECT_EQ(failure(outcome), "thrown by a callback");
}

// wait() names the ranks that are missing from any part, whichever part it waits for at the moment.
TEST_F(Coalescing, Wait_NamesTheMissingRanksOfAllParts) {
  options.timeout = 0ms;
  const auto outcome = run(4, [&](int rank, const ProcessGroup& group) {
    if (rank == 2) send(group, at::ones({1}), 0)->wait();
    if (rank != 0) return;
    group->startCoalescing(at::kCPU);
    for (const int from : {3, 2, 1}) recv(group, at::zeros({1}), from);
    const auto work = group->endCoalescing(at::kCPU);
    try {
      work->wait(20ms);
      ADD_FAILURE() << "no timeout";
    } catch (const TimeoutError& error) {
      EXPECT_THAT(error.ranks(), ElementsAre(1, 3));
      EXPECT_THAT(error.what(), HasSubstr("missing ranks 1,3"));
    }
    work->wait();
  });
  ASSERT_EQ(outcome.blocked.size(), 1u) << failure(outcome);
  EXPECT_THAT(outcome.blocked[0].waits_for, ElementsAre(1, 3));
  EXPECT_EQ(outcome.blocked[0].call,
            "recv #1 from rank 3 on group \"world\" and recv #3 from rank 1 on group \"world\"");
}

// Sends that every rank launches before any rank waits cannot deadlock, in a ring or otherwise.
TEST_F(Coalescing, RingOfSendsAndReceives_Completes) {
  const auto outcome = run(5, [](int rank, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    send(group, at::ones({1}), (rank + 1) % 5);
    recv(group, at::zeros({1}), (rank + 4) % 5);
    EXPECT_TRUE(group->endCoalescing(at::kCPU)->wait());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
