// SPDX-License-Identifier: BSD-3-Clause
// Contract: after a mismatch, the other ranks still get time to make their calls, which count as votes. If more than
// half of the group agrees, the report names the other ranks, whichever rank came first. The world then ends, and
// nothing is launched.
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using c10d::ReduceOp;
using testing::ElementsAre;
using testing::IsEmpty;

class MismatchVote : public CommTest {
 protected:
  // Each rank makes the call of its letter: an all-reduce by sum (s), max (m) or product (p), or a broadcast (b). '-':
  // the rank makes no call.
  exec::RunOutcome run_calls(const std::string& calls) {
    EXPECT_CALL(fabric, launch).Times(0);
    return run(static_cast<int>(calls.size()), [&](int rank, const ProcessGroup& group) {
      const char call = calls[static_cast<std::size_t>(rank)];
      if (call == '-') return;
      const auto op = call == 'm' ? ReduceOp::MAX : call == 'p' ? ReduceOp::PRODUCT : ReduceOp::SUM;
      if (call == 'b') broadcast(group, at::ones({2}))->wait();
      allreduce(group, at::ones({2}), op)->wait();
      ADD_FAILURE() << "rank " << rank << " went on";
    });
  }
};

TEST_F(MismatchVote, OddRank_IsNamedInAnyOrder) {
  for (const std::string calls : {"mssss", "smsss", "ssssm"}) {
    mismatches.clear();
    const auto outcome = run_calls(calls);
    EXPECT_EQ(outcome.ending, exec::Ending::stopped);
    ASSERT_EQ(mismatches.size(), 1u) << calls;
    const auto& mismatch = mismatches[0];
    const auto odd = static_cast<int>(calls.find('m'));
    EXPECT_TRUE(mismatch.has_majority);
    EXPECT_EQ(mismatch.first.alike.size(), 4u);
    EXPECT_EQ(mismatch.first.fingerprint, "allreduce(sum, float32[2], cpu)");
    EXPECT_THAT(mismatch.second.alike, ElementsAre(odd));
    EXPECT_EQ(mismatch.second.rank, odd);
    EXPECT_THAT(mismatch.others, IsEmpty());
    EXPECT_EQ(mismatch.fields, (std::vector<Mismatch::Field>{{"reduce_op", "sum", "max"}}));
    EXPECT_EQ(outcome.stop_reason, to_string(mismatch));
  }
  EXPECT_EQ(
      to_string(mismatches[0]),
      "rank 4 called allreduce(max, float32[2], cpu) while ranks 0-3 called allreduce(sum, float32[2], cpu) as #1 "
      "of group \"world\": reduce_op max, not sum");
}

TEST_F(MismatchVote, RanksThatAllDiffer_AreAllNamed) {
  run_calls("smp");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_FALSE(mismatches[0].has_majority);
  EXPECT_EQ(to_string(mismatches[0]),
            "ranks 0, 1 and 2 disagree at #1 of group \"world\": rank 0 called allreduce(sum, float32[2], cpu), rank 1 "
            "called allreduce(max, float32[2], cpu), rank 2 called allreduce(product, float32[2], cpu); they differ "
            "in reduce_op (sum, max, product)");
}

// c10d itself finds no back end for the meta device, so the test calls the back end directly. A custom device would
// reach the back end through c10d.
TEST_F(MismatchVote, TensorOnAnotherDevice_IsAMismatch) {
  run(3, [&](int rank, const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{at::empty({2}, rank == 1 ? at::kMeta : at::kCPU)};
    group->getDefaultBackend()->allreduce(tensors, {})->wait();
    ADD_FAILURE() << "rank " << rank << " went on";
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"device", "cpu", "meta"}}));
  EXPECT_EQ(
      to_string(mismatches[0]),
      "rank 1 called allreduce(sum, float32[2], meta) while ranks 0,2 called allreduce(sum, float32[2], cpu) as #1 "
      "of group \"world\": device meta, not cpu");
}

TEST_F(MismatchVote, TwoAgainstTwo_NamesBothParties) {
  run_calls("smms");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_FALSE(mismatches[0].has_majority);
  EXPECT_EQ(to_string(mismatches[0]),
            "ranks 0,3 and 1-2 disagree at #1 of group \"world\": ranks 0,3 called allreduce(sum, float32[2], cpu), "
            "ranks 1-2 called allreduce(max, float32[2], cpu); they differ in reduce_op (sum, max)");
}

// The report does not depend on the order of arrival.
TEST_F(MismatchVote, NoMajority_NamesThePartyOfTheLowestRankFirst) {
  run(4, [](int rank, const ProcessGroup& group) {
    if (rank < 2) exec::this_rank::sleep_for(1ms);
    allreduce(group, at::ones({2}), rank % 2 == 0 ? ReduceOp::SUM : ReduceOp::MAX)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_THAT(mismatches[0].first.alike, ElementsAre(0, 2));
  EXPECT_EQ(mismatches[0].first.rank, 0);
  EXPECT_THAT(mismatches[0].second.alike, ElementsAre(1, 3));
}

TEST_F(MismatchVote, SeveralOddRanks_AreAllKept) {
  run_calls("bssmssp");
  ASSERT_EQ(mismatches.size(), 1u);
  const auto& mismatch = mismatches[0];
  EXPECT_THAT(mismatch.first.alike, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(mismatch.second.alike, ElementsAre(0));
  ASSERT_EQ(mismatch.others.size(), 2u);
  EXPECT_THAT(mismatch.others[0].alike, ElementsAre(3));
  EXPECT_THAT(mismatch.others[1].alike, ElementsAre(6));
  EXPECT_EQ(to_string(mismatch),
            "rank 0 called broadcast(root=0, float32[2], cpu) and rank 3 called allreduce(max, float32[2], cpu) and 1 "
            "more call while ranks 1-2,4-5 called allreduce(sum, float32[2], cpu) as #1 of group \"world\": op "
            "broadcast, not allreduce, reduce_op max and product, not sum");
}

// The ranks that agree are more than half of those that came, but not of the group. The missing ranks might have voted
// differently.
TEST_F(MismatchVote, MajorityOfTheArrivedRanks_IsNotEnough) {
  run_calls("ssm--");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_FALSE(mismatches[0].has_majority);
  EXPECT_THAT(mismatches[0].first.alike, ElementsAre(0, 1));
}

TEST_F(MismatchVote, LateRanks_AreWaitedForASecond) {
  const auto start = clock.now();
  run(4, [&](int rank, const ProcessGroup& group) {
    if (rank == 2) exec::this_rank::sleep_for(1ms);
    if (rank == 3) exec::this_rank::sleep_for(1h);
    allreduce(group, at::ones({2}), rank == 0 ? ReduceOp::MAX : ReduceOp::SUM)->wait();
  });
  EXPECT_EQ(clock.now() - start, 1s);
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_THAT(mismatches[0].first.alike, ElementsAre(0));
  EXPECT_THAT(mismatches[0].second.alike, ElementsAre(1, 2));
}

TEST_F(MismatchVote, WorldThatEndsMeanwhile_StillReportsTheMismatch) {
  const auto outcome = run(4, [&](int rank, const ProcessGroup& group) {
    if (rank == 3) {
      exec::this_rank::sleep_for(1ms);
      throw std::runtime_error("out of memory");
    }
    allreduce(group, at::ones({2}), rank == 0 ? ReduceOp::MAX : ReduceOp::SUM)->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::rank_failed);
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_THAT(mismatches[0].second.alike, ElementsAre(1, 2));
}

// A mismatch in another group during the vote is not reported, because one mismatch ends the world.
TEST_F(MismatchVote, SecondMismatch_IsNotReported) {
  run(4, [&](int rank, const ProcessGroup& world) {
    const auto left = communicators->new_group(std::vector{0, 1, 3}, "left", {});
    const auto right = communicators->new_group(std::vector{2, 3}, "right", {});
    if (rank == 0 || rank == 1) allreduce(left, at::ones({2}), rank == 0 ? ReduceOp::MAX : ReduceOp::SUM)->wait();
    if (rank >= 2) allreduce(right, at::ones({2}), rank == 2 ? ReduceOp::MAX : ReduceOp::SUM)->wait();
    world->barrier()->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].group, "left");
}

}  // namespace
}  // namespace rehearse::comm
