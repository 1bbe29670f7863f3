// SPDX-License-Identifier: BSD-3-Clause
// Contract: if ranks coalesce differently, the report says where they differ. A call is refused if its lists of tensors
// do not fit each other.
#include "core/comm/backend/coalescing_world.h"

namespace rehearse::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;
using Fields = std::vector<Mismatch::Field>;
using CoalescedCall = std::function<WorkPtr(const ProcessGroup& group)>;

CoalescedCall by_hand(std::vector<CoalescedCall> calls) {
  return [calls](const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    for (const auto& call : calls) call(group);
    return group->endCoalescing(at::kCPU);
  };
}

CoalescedCall into_tensor(std::vector<std::int64_t> counts) {
  return [counts](const ProcessGroup& group) {
    Tensors inputs, outputs;
    for (const auto count : counts) {
      inputs.push_back(at::ones({count}));
      outputs.push_back(at::ones({2 * count}));
    }
    return group->allgather_into_tensor_coalesced(outputs, inputs);
  };
}

CoalescedCall reduced(std::int64_t count, c10d::ReduceOp op = c10d::ReduceOp::SUM) {
  return [=](const ProcessGroup& group) { return allreduce(group, at::ones({count}), op); };
}

CoalescedCall gathered(std::int64_t count) {
  return [=](const ProcessGroup& group) {
    auto output = at::ones({2 * count}), input = at::ones({count});
    return group->_allgather_base(output, input);
  };
}

struct Difference {
  CoalescedCall first, second;
  Fields fields;
};

TEST_F(Coalescing, RanksThatCoalesceDifferently_LearnWhereTheyDiffer) {
  const std::vector<Difference> differences{
      {into_tensor({1, 2}), into_tensor({1, 2, 3}), {{"operations", "2", "3"}}},
      {into_tensor({1, 2}), into_tensor({1, 3}), {{"shape of operation 2", "[2]", "[3]"}}},
      {into_tensor({1}), gathered(1), {{"op", "coalesced", "_allgather_base"}}},
      {by_hand({reduced(1), reduced(1)}),
       by_hand({reduced(1), gathered(1)}),
       {{"op of operation 2", "allreduce", "_allgather_base"}}},
      {by_hand({reduced(1), reduced(2)}),
       by_hand({reduced(1, c10d::ReduceOp::MAX), reduced(2)}),
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
    alltoall(group, at::ones({4}), at::ones({4}), {2, 2}, {2, 2});
    alltoall(group, at::ones({rank == 0 ? 4 : 5}), at::ones({4}),
             rank == 0 ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{3, 2}, {2, 2});
    group->endCoalescing(at::kCPU)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (Fields{{"splits of rank 0 to rank 1", "sends 2", "expects 3"}}));
}

// One rank's coalesced call matches another rank's calls between startCoalescing() and endCoalescing().
TEST_F(Coalescing, ByHandOrByCall_IsTheSame) {
  run_on_two([](int rank, const ProcessGroup& group) {
    return rank == 0 ? into_tensor({1, 2})(group) : by_hand({gathered(1), gathered(2)})(group);
  });
  EXPECT_EQ(types.size(), 1u);
}

TEST_F(Coalescing, BadLists_AreRefusedWithGloosTexts) {
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    Tensors none, one{at::ones({2})}, two{at::ones({2}), at::ones({2}, at::kDouble)};
    EXPECT_EQ(refusal_of([&] { backend->allreduce_coalesced(none, {}); }),
              "rehearse::allreduce_coalesced: requires non-empty tensor list");
    EXPECT_EQ(refusal_of([&] { backend->allreduce_coalesced(two, {}); }),
              "rehearse::allreduce_coalesced: tensors must all have the same type");
    Tensors devices{at::ones({2}), at::empty({2}, at::kMeta)};
    EXPECT_EQ(refusal_of([&] { backend->allreduce_coalesced(devices, {}); }),
              "rehearse::allreduce_coalesced: tensors must all be on the same device");
    EXPECT_EQ(refusal_of([&] { backend->allgather_into_tensor_coalesced(two, one, {}); }),
              "rehearse::allgather_into_tensor_coalesced: requires input/output tensor lists to have the same length");
    EXPECT_EQ(refusal_of([&] { backend->reduce_scatter_tensor_coalesced(none, none, {}); }),
              "rehearse::reduce_scatter_tensor_coalesced: requires non-empty tensor list");
    Lists lists{one};
    EXPECT_EQ(refusal_of([&] { backend->allgather_coalesced(lists, none, {}); }),
              "rehearse::allgather_coalesced: requires non-empty input tensor list");
    EXPECT_EQ(refusal_of([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: output lists should be equal to world size");
    lists = {one, two};
    EXPECT_EQ(refusal_of([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: invalid output size: (expected length 1, got 2)");
    lists = {one, {at::ones({3})}};
    EXPECT_EQ(refusal_of([&] { backend->allgather_coalesced(lists, one, {}); }),
              "rehearse::allgather_coalesced: invalid size of output tensor at index 0 (expected length [2], got [3])");
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
