// SPDX-License-Identifier: BSD-3-Clause
// Contract: the verdict on a collective's calls depends on which rank made which call, never on the order of arrival.
#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/agree/collective_calls.h"
#include "comm/call/fingerprint.h"

namespace rehearse::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CallsOfThree : public ::testing::Test {
 protected:
  CallsOfThree() { calls_.open(1); }

  bool add(int rank, const Operation& operation) {
    return calls_.add({rank, 1, &operation, agreement_hash(operation, 0)}, [](int) { return exec::CallSite(); });
  }

  static Operation allreduce(at::IntArrayRef sizes, const PayloadName* payload = nullptr) {
    Operation call;
    call.type = c10d::OpType::ALLREDUCE;
    call.reduce_op = c10d::ReduceOp::SUM;
    call.inputs.push_back(at::zeros(sizes));
    call.outputs = call.inputs;
    call.payload = payload;
    return call;
  }

  static Operation alltoall(std::vector<std::int64_t> sent, std::vector<std::int64_t> expected) {
    Operation call;
    call.type = c10d::OpType::ALLTOALL_BASE;
    call.inputs.push_back(at::zeros({8}));
    call.outputs.push_back(at::zeros({8}));
    call.input_splits.assign(sent.begin(), sent.end());
    call.output_splits.assign(expected.begin(), expected.end());
    return call;
  }

  GroupIdentity group_{0, "g", {2, 5, 7}};
  CollectiveCalls calls_{group_};
};

TEST_F(CallsOfThree, ThatFit_WaitForTheMissing) {
  const auto call = allreduce({2});
  EXPECT_TRUE(add(1, call));
  EXPECT_EQ(calls_.first(), 1);
  EXPECT_THAT(calls_.waits_for(1), ElementsAre(2, 7));
  EXPECT_EQ(calls_.describe("it"), "it (1 of 3 ranks has called it)");
  EXPECT_TRUE(add(0, call));
  EXPECT_TRUE(add(2, call));
  EXPECT_TRUE(calls_.full());
  EXPECT_THAT(calls_.waits_for(1), IsEmpty());
}

TEST_F(CallsOfThree, RankThatIsWithdrawn_IsMissingAgain) {
  const auto call = allreduce({2});
  add(1, call);
  add(2, call);
  calls_.withdraw(1);
  EXPECT_EQ(calls_.first(), 2);
  EXPECT_EQ(calls_.arrived(), 1U);
  EXPECT_THAT(calls_.waits_for(2), ElementsAre(2, 5));
  EXPECT_TRUE(add(1, call));
}

// A call without a name fits both other calls, which do not fit each other.
TEST_F(CallsOfThree, UnnamedAmongTwoNames_AreReportedAlikeInAnyOrder) {
  const PayloadName weights{"weights", 1}, biases{"biases", 2};
  const Operation made[] = {allreduce({2}, &weights), allreduce({2}), allreduce({2}, &biases)};
  std::vector<int> order{0, 1, 2};
  do {
    calls_.open(1);
    for (const int rank : order) add(rank, made[rank]);
    ASSERT_FALSE(calls_.fit());
    EXPECT_TRUE(calls_.all_have_voted());
    const auto mismatch = calls_.mismatch();
    EXPECT_THAT(mismatch.first.alike, ElementsAre(2, 5));
    EXPECT_THAT(mismatch.second.alike, ElementsAre(7));
    EXPECT_THAT(calls_.waits_for(2), ElementsAre(2, 5));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(CallsOfThree, ThreeShapes_AreAllReported) {
  const Operation made[] = {allreduce({2}), allreduce({3}), allreduce({4})};
  for (const int rank : {2, 0, 1}) add(rank, made[rank]);
  EXPECT_EQ(calls_.mismatch().fields, (std::vector<Mismatch::Field>{{"shape", "[2]", "[3]", {"[4]"}}}));
}

// A flight recorder's dump may lack the split sizes. Then the check compares no split sizes, and the calls fit.
TEST_F(CallsOfThree, SplitsThatAreNotKnown_FitAll) {
  const auto known = alltoall({3, 2, 3}, {3, 2, 3}), unknown = alltoall({}, {});
  EXPECT_TRUE(add(0, unknown));
  EXPECT_TRUE(add(1, known));
  EXPECT_TRUE(add(2, unknown));
  EXPECT_EQ(fingerprint_text(unknown), "alltoall_base(float32[8], cpu)");
}

// Rank 5 (rank 1 in the group) sends 1 element to rank 2 (rank 0 in the group), which expects 2. Only these two
// disagree.
TEST_F(CallsOfThree, SplitsThatDoNotFit_SetTwoRanksApart) {
  const Operation made[] = {alltoall({1, 1, 1}, {1, 2, 1}), alltoall({1, 1, 1}, {1, 1, 1}),
                            alltoall({1, 1, 1}, {1, 1, 1})};
  EXPECT_TRUE(add(0, made[0]));
  EXPECT_TRUE(add(2, made[2]));
  EXPECT_FALSE(add(1, made[1]));
  EXPECT_THAT(calls_.waits_for(0), ElementsAre(5));
  EXPECT_EQ(calls_.mismatch().fields,
            (std::vector<Mismatch::Field>{{"splits of rank 5 to rank 2", "expects 2", "sends 1"}}));
  EXPECT_FALSE(calls_.mismatch().has_majority);
}

// Rank 5 expects 2 elements from rank 2 and none from rank 7, which both send 1.
TEST_F(CallsOfThree, RankWhoseSplitsFitNoOther_IsTheOddOneInAnyOrder) {
  const Operation made[] = {alltoall({1, 1, 1}, {1, 1, 1}), alltoall({1, 1, 1}, {2, 1, 0}),
                            alltoall({1, 1, 1}, {1, 1, 1})};
  std::vector<int> order{0, 1, 2};
  do {
    calls_.open(1);
    for (const int rank : order) add(rank, made[rank]);
    ASSERT_TRUE(calls_.all_have_voted());
    const auto mismatch = calls_.mismatch();
    EXPECT_TRUE(mismatch.has_majority);
    EXPECT_THAT(mismatch.first.alike, ElementsAre(2, 7));
    EXPECT_THAT(mismatch.second.alike, ElementsAre(5));
    EXPECT_EQ(mismatch.fields, (std::vector<Mismatch::Field>{{"splits of rank 2 to rank 5", "sends 1", "expects 2"}}));
    EXPECT_THAT(calls_.waits_for(0), ElementsAre(5));
    EXPECT_THAT(calls_.waits_for(1), ElementsAre(2, 7));
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace rehearse::comm
