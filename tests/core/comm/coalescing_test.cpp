// SPDX-License-Identifier: BSD-3-Clause
// Contract: coalesced calls reach the fabric as one transfer with a part for each operation; startCoalescing() and
// endCoalescing() make one of whatever stands between them, with one Work; ranks that coalesce differently are told so.
#include "test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using c10d::OpType;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;
using Fields = std::vector<Mismatch::Field>;

class Coalescing : public CommTest {
 protected:
  Coalescing() {
    ON_CALL(fabric, launch).WillByDefault([this](const Transfer& transfer, Completion& done) {
      types.push_back(transfer.type);
      for (const auto* const call : transfer.calls) calls.push_back(*call);
      done.on_complete();
    });
  }

  void run_on_two(const std::function<WorkPtr(int rank, const ProcessGroup& group)>& call) {
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) { EXPECT_TRUE(call(rank, group)->wait()); });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }

  std::vector<OpType> types;
  std::vector<Operation> calls;
};

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

// The collectives become one, the sends and receives go on their own, and one Work is complete when all are.
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
  run(2, [](int, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    EXPECT_EQ(group->endCoalescing(at::kCPU), nullptr);
  });
  EXPECT_TRUE(types.empty());
}

TEST_F(Coalescing, MisuseOfStartAndEnd_IsAnError) {
  const auto text = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "accepted";
  };
  const auto outcome = run(2, [&](int, const ProcessGroup& group) {
    EXPECT_THAT(text([&] { group->endCoalescing(at::kCPU); }), HasSubstr("there was no startCoalescing()"));
    group->startCoalescing(at::kCPU);
    EXPECT_THAT(text([&] { group->startCoalescing(at::kCPU); }), HasSubstr("called twice without endCoalescing()"));
    EXPECT_THAT(text([&] { group->monitoredBarrier({}); }), HasSubstr("it blocks, so it cannot be coalesced"));
    EXPECT_THAT(text([&] { broadcast(group, at::ones({1}), 7); }), HasSubstr("invalid root rank: 7"));
    const auto work = group->barrier();
    EXPECT_THAT(text([&] { work->wait(); }), HasSubstr("before endCoalescing() has launched them"));
    EXPECT_THAT(text([&] { work->isCompleted(); }), HasSubstr("before endCoalescing() has launched them"));
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

// Whoever is missing from any part is waited for, whichever part the wait has come to.
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
      EXPECT_THAT(error.what(), HasSubstr("missing ranks: 1,3"));
    }
    work->wait();
  });
  ASSERT_EQ(outcome.blocked.size(), 1u) << failure(outcome);
  EXPECT_THAT(outcome.blocked[0].waits_for, ElementsAre(1, 3));
  EXPECT_EQ(outcome.blocked[0].call, "recv #1 from rank 3 on group \"world\" and recv #3 from rank 1 on group \"world\"");
}

// Sends that everybody launches before anybody waits cannot lock up, in a ring or otherwise.
TEST_F(Coalescing, RingOfSendsAndReceives_Completes) {
  const auto outcome = run(5, [](int rank, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    send(group, at::ones({1}), (rank + 1) % 5);
    recv(group, at::zeros({1}), (rank + 4) % 5);
    EXPECT_TRUE(group->endCoalescing(at::kCPU)->wait());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

using Call = std::function<WorkPtr(const ProcessGroup& group)>;

Call by_hand(std::vector<Call> calls) {
  return [calls](const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    for (const auto& call : calls) call(group);
    return group->endCoalescing(at::kCPU);
  };
}

Call into_tensor(std::vector<std::int64_t> counts) {
  return [counts](const ProcessGroup& group) {
    Tensors inputs, outputs;
    for (const auto count : counts) {
      inputs.push_back(at::ones({count}));
      outputs.push_back(at::ones({2 * count}));
    }
    return group->allgather_into_tensor_coalesced(outputs, inputs);
  };
}

Call reduced(std::int64_t count, c10d::ReduceOp op = c10d::ReduceOp::SUM) {
  return [=](const ProcessGroup& group) { return allreduce(group, at::ones({count}), op); };
}

Call gathered(std::int64_t count) {
  return [=](const ProcessGroup& group) {
    auto output = at::ones({2 * count}), input = at::ones({count});
    return group->_allgather_base(output, input);
  };
}

struct Difference {
  Call first, second;
  Fields fields;
};

TEST_F(Coalescing, RanksThatCoalesceDifferently_AreToldWhereTheyDiffer) {
  const std::vector<Difference> differences{
      {into_tensor({1, 2}), into_tensor({1, 2, 3}), {{"operations", "2", "3"}}},
      {into_tensor({1, 2}), into_tensor({1, 3}), {{"shape of operation 2", "[2]", "[3]"}}},
      {into_tensor({1}), gathered(1), {{"op", "coalesced", "_allgather_base"}}},
      {by_hand({reduced(1), reduced(1)}), by_hand({reduced(1), gathered(1)}),
       {{"op of operation 2", "allreduce", "_allgather_base"}}},
      {by_hand({reduced(1), reduced(2)}), by_hand({reduced(1, c10d::ReduceOp::MAX), reduced(2)}),
       {{"reduce_op of operation 1", "sum", "max"}}},
  };
  for (std::size_t i = 0; i < differences.size(); ++i) {
    mismatches.clear();
    run(2, [&](int rank, const ProcessGroup& group) {
      (rank == 0 ? differences[i].first : differences[i].second)(group)->wait();
    });
    ASSERT_EQ(mismatches.size(), 1u) << i;
    EXPECT_EQ(mismatches[0].fields, differences[i].fields) << to_string(mismatches[0]);
  }
  EXPECT_EQ(mismatches[0].first.fingerprint,
            "coalesced(allreduce(sum, float32[1], cpu), allreduce(sum, float32[2], cpu))");
  EXPECT_TRUE(types.empty());
}

TEST_F(Coalescing, SplitsOfACoalescedAlltoall_AreComparedToo) {
  run(2, [](int rank, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    allreduce(group, at::ones({1}));
    alltoall(group, at::ones({4}), at::ones({4}), {2, 2}, rank == 0 ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{2, 2});
    alltoall(group, at::ones({rank == 0 ? 4 : 5}), at::ones({4}), rank == 0 ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{3, 2}, {2, 2});
    group->endCoalescing(at::kCPU)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (Fields{{"splits of rank 0 to rank 1", "sends 2", "expects 3"}}));
}

// What one rank's call coalesces, another may coalesce by hand.
TEST_F(Coalescing, ByHandOrByCall_IsTheSame) {
  run_on_two([](int rank, const ProcessGroup& group) {
    return rank == 0 ? into_tensor({1, 2})(group) : by_hand({gathered(1), gathered(2)})(group);
  });
  EXPECT_EQ(types.size(), 1u);
}

TEST_F(Coalescing, BadLists_AreRefusedWithGloosTexts) {
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    const auto text = [](const std::function<void()>& call) -> std::string {
      try {
        call();
      } catch (const c10::Error& error) {
        return error.what_without_backtrace();
      }
      return "accepted";
    };
    Tensors none, one{at::ones({2})}, two{at::ones({2}), at::ones({2}, at::kDouble)};
    EXPECT_EQ(text([&] { backend->allreduce_coalesced(none, {}); }),
              "rehearse::allreduce_coalesced: requires non-empty tensor list");
    EXPECT_EQ(text([&] { backend->allreduce_coalesced(two, {}); }),
              "rehearse::allreduce_coalesced: tensors must all have the same type");
    Tensors devices{at::ones({2}), at::empty({2}, at::kMeta)};
    EXPECT_EQ(text([&] { backend->allreduce_coalesced(devices, {}); }),
              "rehearse::allreduce_coalesced: tensors must all be on the same device");
    EXPECT_EQ(text([&] { backend->allgather_into_tensor_coalesced(two, one, {}); }),
              "rehearse::allgather_into_tensor_coalesced: requires input/output tensor lists to have the same length");
    EXPECT_EQ(text([&] { backend->reduce_scatter_tensor_coalesced(none, none, {}); }),
              "rehearse::reduce_scatter_tensor_coalesced: requires non-empty tensor list");
    Lists lists{one};
    EXPECT_EQ(text([&] { backend->allgather_coalesced(lists, none, {}); }),
              "rehearse::allgather_coalesced: requires non-empty input tensor list");
    EXPECT_EQ(text([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: output lists should be equal to world size");
    lists = {one, two};
    EXPECT_EQ(text([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: invalid output size: (expected length 1, got 2)");
    lists = {one, {at::ones({3})}};
    EXPECT_EQ(text([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: invalid size of output tensor at index 0 (expected length [2], got [3])");
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
