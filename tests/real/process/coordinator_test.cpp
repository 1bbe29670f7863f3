// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse_internal/archive/archive.h>

#include "process/check/coordinator.h"

// Contract: the coordinator decides which calls match and how a job has ended, from messages and the time alone.
namespace rehearse::real {
namespace {

using namespace std::chrono_literals;

class CoordinatorTest : public ::testing::Test {
 protected:
  explicit CoordinatorTest(int ranks)
      : ranks_(ranks),
        coordinator_(ranks, 10s, [this](int rank, const ToRank& message) { sent_.push_back({rank, message}); }) {
    coordinator_.check_deadlines(at(0s));
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    for (const int rank : all) receive(rank, GroupMade{"new_group", 0, "world", "world", "world", all}, 0s);
    EXPECT_EQ(gos(), all);
    sent_.clear();
  }

  static VirtualTime at(VirtualDuration time) { return VirtualTime{time + 1s}; }

  // Packs and unpacks the message, as the store does.
  void receive(int rank, const RankMessage& body, VirtualDuration time) {
    coordinator_.receive(archive::unpacked<FromRank>(archive::packed(FromRank{rank, body}), "it"), at(time));
  }

  void call(int rank, std::uint64_t sequence, VirtualDuration time, at::IntArrayRef sizes = {2},
            std::chrono::milliseconds timeout = 5s) {
    comm::Operation call;
    call.timeout = timeout;
    call.type = c10d::OpType::ALLREDUCE;
    call.reduce_op = c10d::ReduceOp::SUM;
    call.inputs.push_back(at::ones(sizes));
    call.outputs = call.inputs;
    receive(rank, CallMade{"world", sequence, facts_of(call)}, time);
  }

  // If `peer` is -1, the rank receives from any rank.
  void recv(int rank, int peer, VirtualDuration time) {
    comm::Operation call;
    call.type = c10d::OpType::RECV;
    call.peer = peer;
    call.timeout = 1800s;
    call.outputs.push_back(at::ones({2}));
    receive(rank, CallMade{"world", 1, facts_of(call)}, time);
  }

  void barrier(int rank, std::uint64_t sequence, VirtualDuration time) {
    comm::Operation call;
    call.type = c10d::OpType::BARRIER;
    call.tag = comm::Operation::kMonitoredBarrier;
    call.timeout = 1s;
    receive(rank, CallMade{"world", sequence, facts_of(call)}, time);
  }

  void beat(VirtualDuration time) {
    for (int rank = 0; rank < ranks_; ++rank) receive(rank, StillAlive{}, time);
    coordinator_.check_deadlines(at(time));
  }

  std::vector<int> gos() const {
    std::vector<int> ranks;
    for (const auto& [rank, message] : sent_) {
      if (std::holds_alternative<Go>(message)) ranks.push_back(rank);
    }
    return ranks;
  }

  std::vector<int> failed_barriers() const {
    std::vector<int> ranks;
    for (const auto& [rank, message] : sent_) {
      if (std::holds_alternative<BarrierFailed>(message)) ranks.push_back(rank);
    }
    return ranks;
  }

  const JobOutcome& job_outcome() const { return std::get<Over>(sent_.back().second).job_outcome; }

  const int ranks_;
  std::vector<std::pair<int, ToRank>> sent_;
  Coordinator coordinator_;
};

class CoordinatorOfTwo : public CoordinatorTest {
 protected:
  CoordinatorOfTwo() : CoordinatorTest(2) {}
};

class CoordinatorOfThree : public CoordinatorTest {
 protected:
  CoordinatorOfThree() : CoordinatorTest(3) {}
};

TEST_F(CoordinatorOfTwo, CallsThatAgree_GoWhenTheLastIsThere) {
  call(1, 1, 1s);
  EXPECT_TRUE(sent_.empty());
  call(0, 1, 2s);
  EXPECT_EQ(gos(), (std::vector<int>{0, 1}));
}

TEST_F(CoordinatorOfTwo, CallsThatDiffer_EndTheJobWithBothCalls) {
  call(0, 1, 1s, {2});
  call(1, 1, 1s, {3});
  for (int rank = 0; rank < 2; ++rank) receive(rank, RankEnded{exec::RankEnd::aborted, FailureKind::plain, "", {}}, 2s);
  ASSERT_TRUE(coordinator_.over());
  EXPECT_EQ(job_outcome().ending, exec::Ending::stopped);
  ASSERT_EQ(job_outcome().mismatches.size(), 1U);
  EXPECT_EQ(job_outcome().mismatches[0].first.fingerprint, "allreduce(sum, float32[2], cpu)");
  EXPECT_EQ(job_outcome().mismatches[0].second.fingerprint, "allreduce(sum, float32[3], cpu)");
  EXPECT_EQ(job_outcome().blocked.size(), 2U);
}

TEST_F(CoordinatorOfTwo, CallThatARankDoesNotComeTo_IsOverdueAfterTheCheckTimeout) {
  call(0, 1, 1s);
  beat(10'999ms);
  EXPECT_TRUE(sent_.empty());
  beat(11s);
  ASSERT_FALSE(sent_.empty());
  EXPECT_EQ(std::get<Stop>(sent_.back().second).why,
            "allreduce #1 on group \"world\": rank 1 did not come within 10 s");
}

// The text has the time that passed, not the check timeout, because the coordinator checks its deadlines late.
TEST_F(CoordinatorOfTwo, OverdueCall_NamesTheTimeThatPassed) {
  call(0, 1, 1s);
  beat(13'370ms);
  ASSERT_FALSE(sent_.empty());
  EXPECT_EQ(std::get<Stop>(sent_.back().second).why,
            "allreduce #1 on group \"world\": rank 1 did not come within 12.3 s");
}

TEST_F(CoordinatorOfTwo, Interrupt_TellsEachRankWhichRanksItWaitsFor) {
  call(0, 1, 1s);
  receive(1, Interrupted{}, 2s);
  ASSERT_EQ(sent_.size(), 2U);
  const auto& waits = std::get<Stop>(sent_[0].second);
  EXPECT_EQ(waits.waits_on, "allreduce #1 on group \"world\" (1 of 2 ranks has called it)");
  EXPECT_EQ(waits.waits_for, std::vector<int>{1});
  EXPECT_EQ(std::get<Stop>(sent_[1].second).waits_on, "");
}

TEST_F(CoordinatorOfTwo, RankThatComputes_HasTheTimeoutOfTheCall) {
  call(0, 1, 1s, {2}, 20s);
  beat(20s);
  EXPECT_TRUE(sent_.empty());
  beat(21s);
  ASSERT_FALSE(sent_.empty());
  EXPECT_EQ(std::get<Stop>(sent_.back().second).why,
            "allreduce #1 on group \"world\": rank 1 did not come within 20 s");
}

// A rank whose own wait timed out fails by itself. The outcome still names the rank that had not come.
TEST_F(CoordinatorOfTwo, RankWhoseCallTimedOut_NamesTheRanksThatItWaitedFor) {
  call(0, 1, 1s);
  RankEnded ended;
  ended.end = exec::RankEnd::failed;
  ended.kind = FailureKind::timeout;
  ended.what = "allreduce #1 on group \"world\": Timed out waiting 5000ms";
  receive(0, ended, 6s);
  call(1, 1, 7s);
  receive(1, RankEnded{}, 7s);
  ASSERT_EQ(job_outcome().failures.size(), 1u);
  EXPECT_EQ(job_outcome().failures[0].gave_up, "allreduce #1 on group \"world\"");
  EXPECT_EQ(job_outcome().failures[0].waits_for, std::vector{1});
}

TEST_F(CoordinatorOfTwo, BarrierThatTimedOut_FailsForPresentAndLateRanks) {
  barrier(0, 1, 1s);
  receive(0, BarrierGivenUp{"world", 1, true, false}, 2s);
  ASSERT_EQ(failed_barriers(), (std::vector<int>{0}));
  const auto& first = std::get<BarrierFailed>(sent_[0].second);
  EXPECT_EQ(first.why, "[Rank 0]: Ranks 1 failed to pass monitoredBarrier in 1000 ms");
  EXPECT_EQ(first.ranks, std::vector{1});
  EXPECT_TRUE(first.is_timeout);
  barrier(1, 1, 3s);
  ASSERT_EQ(failed_barriers(), (std::vector<int>{0, 1}));
  const auto& late = std::get<BarrierFailed>(sent_[1].second);
  EXPECT_EQ(late.why,
            "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank "
            "0. Please check rank 0 logs for faulty rank.");
  EXPECT_EQ(late.ranks, std::vector{0});
  EXPECT_FALSE(late.is_timeout);
  call(0, 2, 4s);
  call(1, 2, 4s);
  EXPECT_EQ(gos(), (std::vector<int>{0, 1}));
}

TEST_F(CoordinatorOfTwo, BarrierWithZeroTimeout_FailsForPresentRanks) {
  barrier(1, 1, 1s);
  receive(0, BarrierGivenUp{"world", 1, false, true}, 2s);
  barrier(0, 1, 2s);
  EXPECT_EQ(failed_barriers(), (std::vector<int>{1, 0}));
  EXPECT_EQ(std::get<BarrierFailed>(sent_[1].second).why,
            "Rank 0 timed out in monitoredBarrier after 0 ms.\nNo ranks successfully processed in monitoredBarrier.");
}

TEST_F(CoordinatorOfTwo, BarrierThatTimedOutAfterAllArrived_Passes) {
  barrier(0, 1, 1s);
  barrier(1, 1, 2s);
  receive(0, BarrierGivenUp{"world", 1, false, false}, 2s);
  EXPECT_EQ(gos(), (std::vector<int>{0, 1}));
  EXPECT_EQ(failed_barriers(), std::vector<int>());
}

// The job ends because of the mismatch, not because of the barrier's timeout.
TEST_F(CoordinatorOfTwo, BarrierThatMatchesAnotherCall_IsAMismatch) {
  call(1, 1, 1s);
  barrier(0, 1, 1s);
  receive(0, BarrierGivenUp{"world", 1, false, false}, 2s);
  EXPECT_EQ(failed_barriers(), std::vector<int>());
  for (int rank = 0; rank < 2; ++rank) receive(rank, RankEnded{exec::RankEnd::aborted, FailureKind::plain, "", {}}, 2s);
  ASSERT_EQ(job_outcome().mismatches.size(), 1U);
}

TEST_F(CoordinatorOfTwo, RankWhoseBarrierTimedOut_NamesTheRanksThatItWaitedFor) {
  barrier(0, 1, 1s);
  receive(0, BarrierGivenUp{"world", 1, false, false}, 2s);
  RankEnded ended;
  ended.end = exec::RankEnd::failed;
  ended.kind = FailureKind::timeout;
  ended.what = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 1000 ms";
  receive(0, ended, 2s);
  receive(1, RankEnded{}, 7s);
  ASSERT_EQ(job_outcome().failures.size(), 1U);
  EXPECT_EQ(job_outcome().failures[0].gave_up, "monitored_barrier #1 on group \"world\"");
  EXPECT_EQ(job_outcome().failures[0].waits_for, std::vector{1});
}

TEST_F(CoordinatorOfTwo, RankThatHasEnded_IsWaitedForUntilTheCheckTimeout) {
  call(0, 1, 1s, {2}, 1800s);
  receive(1, RankEnded{}, 2s);
  beat(11s);
  EXPECT_FALSE(sent_.empty());
}

TEST_F(CoordinatorOfTwo, RanksThatWaitForEachOther_AreWaitedForUntilTheCheckTimeout) {
  for (const int rank : {0, 1}) recv(rank, 1 - rank, 1s);
  beat(11s);
  EXPECT_FALSE(sent_.empty());
}

// A collective needs all ranks. The rank that has ended will not come, whatever the third rank does.
TEST_F(CoordinatorOfThree, CollectiveWithoutARankThatHasEnded_IsWaitedForUntilTheCheckTimeout) {
  call(0, 1, 1s, {2}, 1800s);
  receive(1, RankEnded{}, 2s);
  beat(10'999ms);
  EXPECT_TRUE(sent_.empty());
  beat(11s);
  EXPECT_FALSE(sent_.empty());
}

// A receive from any rank needs only one sender. The third rank still computes, so it may send.
TEST_F(CoordinatorOfThree, ReceiveFromAnyRank_WaitsAsLongAsOneMayCome) {
  recv(0, -1, 1s);
  receive(1, RankEnded{}, 2s);
  beat(15s);
  EXPECT_TRUE(sent_.empty());
  receive(2, RankEnded{}, 16s);
  beat(27s);
  EXPECT_FALSE(sent_.empty());
}

TEST_F(CoordinatorOfTwo, RankThatMakesOtherCallsMeanwhile_DoesNotWait) {
  call(0, 1, 1s);
  call(0, 2, 8s);
  beat(12s);
  EXPECT_TRUE(sent_.empty());
  beat(18s);
  EXPECT_FALSE(sent_.empty());
}

TEST_F(CoordinatorOfTwo, SilentRank_IsLost) {
  for (VirtualDuration time = 1s; time <= 9s; time += 1s) receive(0, StillAlive{}, time);
  coordinator_.check_deadlines(at(9s));
  EXPECT_TRUE(sent_.empty());
  receive(0, StillAlive{}, 10s);
  coordinator_.check_deadlines(at(10s));
  receive(0, RankEnded{exec::RankEnd::aborted, FailureKind::plain, "", {}}, 10s);
  ASSERT_TRUE(coordinator_.over());
  ASSERT_EQ(job_outcome().failures.size(), 1U);
  EXPECT_EQ(job_outcome().failures[0].rank, 1);
  EXPECT_EQ(job_outcome().failures[0].end.kind, FailureKind::lost);
}

TEST_F(CoordinatorOfTwo, SilenceWhileTheCoordinatorWasStopped_EndsNoRank) {
  beat(1s);
  coordinator_.note_pause(13s);
  coordinator_.check_deadlines(at(14s));
  EXPECT_TRUE(sent_.empty());
  coordinator_.check_deadlines(at(24s));
  EXPECT_FALSE(sent_.empty());
}

TEST_F(CoordinatorOfTwo, RankWhoseWorldEndedWithoutAnOutcome_BlamesRank0) {
  receive(1, RankEnded{exec::RankEnd::aborted, FailureKind::plain, "nothing has been heard", {}}, 1s);
  ASSERT_TRUE(coordinator_.over());
  ASSERT_EQ(job_outcome().failures.size(), 1U);
  EXPECT_EQ(job_outcome().failures[0].rank, 0);
  EXPECT_EQ(job_outcome().failures[0].end.what, "it did not answer, so rank 1 gave up on it: nothing has been heard");
}

TEST_F(CoordinatorOfTwo, CallThatCannotBeRead_IsTheFailureOfItsRank) {
  coordinator_.give_up(1, "no such type", at(1s));
  for (int rank = 0; rank < 2; ++rank) receive(rank, RankEnded{exec::RankEnd::aborted, FailureKind::plain, "", {}}, 2s);
  ASSERT_TRUE(coordinator_.over());
  EXPECT_EQ(job_outcome().why,
            "rank 1 failed: its message cannot be compared with the calls of other ranks: no such type");
}

TEST_F(CoordinatorOfTwo, CommunicationFailure_WaitsForTheLostRankThatCausedIt) {
  receive(0, RankEnded{exec::RankEnd::failed, FailureKind::communication, "connection closed", {}}, 5s);
  coordinator_.check_deadlines(at(9s));
  EXPECT_TRUE(sent_.empty());
  coordinator_.check_deadlines(at(10s));
  ASSERT_TRUE(coordinator_.over());
  EXPECT_EQ(job_outcome().failures[0].rank, 1);
  EXPECT_EQ(job_outcome().failures[0].end.kind, FailureKind::lost);
}

TEST_F(CoordinatorOfTwo, RankThatDoesNotAnswerAfterTheEnd_IsAborted) {
  receive(1, RankEnded{exec::RankEnd::failed, FailureKind::plain, "no more data", {}}, 1s);
  beat(10s);
  EXPECT_FALSE(coordinator_.over());
  beat(11s);
  ASSERT_TRUE(coordinator_.over());
  EXPECT_EQ(job_outcome().ranks, (std::vector<exec::RankEnd>{exec::RankEnd::aborted, exec::RankEnd::failed}));
  EXPECT_EQ(job_outcome().why, "rank 1 failed: no more data");
}

TEST_F(CoordinatorOfTwo, CallOfOneRank_IsPendingWhenAllHaveReturned) {
  call(0, 1, 1s);
  for (int rank = 0; rank < 2; ++rank) receive(rank, RankEnded{}, 2s);
  ASSERT_TRUE(coordinator_.over());
  EXPECT_EQ(job_outcome().ending, exec::Ending::all_returned);
  ASSERT_EQ(job_outcome().pending.size(), 1U);
  EXPECT_EQ(job_outcome().pending[0].call, "allreduce #1 on group \"world\"");
  EXPECT_EQ(job_outcome().pending[0].waits_for, (std::vector<int>{1}));
}

}  // namespace
}  // namespace rehearse::real
