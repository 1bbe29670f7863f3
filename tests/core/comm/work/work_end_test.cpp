// SPDX-License-Identifier: BSD-3-Clause
// Contract: a work that is aborted, dropped or outlives its world harms no other work.
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

using WorkTest = CommTest;

// An aborted call no longer counts. The other ranks wait in vain, as with NCCL, and the list of pending operations must
// name the rank for which they wait.
TEST_F(WorkTest, AbortOfACollective_FailsItAndTheOthersMissThisRank) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    if (rank != 0) {
      EXPECT_THROW(work->wait(5ms), TimeoutError);
      return;
    }
    work->abort();
    EXPECT_THROW(work->wait(), CommError);
    EXPECT_FALSE(work->isSuccess());
    EXPECT_TRUE(work->isCompleted());
    EXPECT_NE(work->exception(), nullptr);
    EXPECT_EQ(work->getFutureResult()->value().toInt(), static_cast<int>(c10d::WorkResult::COMM_ERROR));
    EXPECT_EQ(group->getDefaultBackend()->getError(), c10d::ErrorType::COMM_ERROR);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  ASSERT_EQ(pending.size(), 2u);
  EXPECT_THAT(pending[0].waits_for, ElementsAre(0));
}

TEST_F(WorkTest, AbortWhenAllRanksAreThere_IsTheAbortingRanksOwnAffair) {
  fabric.takes = 1ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    if (rank == 1) {
      work->abort();
      EXPECT_THROW(work->wait(), CommError);
    } else {
      EXPECT_TRUE(work->wait());
    }
    allreduce(group, at::ones({1}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, DroppedWork_TakesPartAllTheSame) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const auto first = allreduce(group, at::ones({1}));
    if (rank == 1) first->wait();
    allreduce(group, at::ones({2}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, WorksAndGroups_AreHarmlessAfterTheirWorld) {
  std::vector<WorkPtr> works;
  std::vector<ProcessGroup> groups;
  fabric.takes = -1ns;
  EXPECT_CALL(fabric, cancel).Times(1);
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    groups.push_back(group);
    works.push_back(broadcast(group, at::ones({1})));  // stays in flight forever
    if (rank == 0) works.push_back(allreduce(group, at::ones({1})));
    if (rank == 0) works.push_back(send(group, at::ones({1}), 1));
    if (rank == 1) works.push_back(recv(group, at::ones({1}), 0, 5));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  EXPECT_EQ(pending.size(), 5u);
  for (const auto& work : works) {
    EXPECT_FALSE(work->isCompleted());
    EXPECT_THROW(work->wait(), CommError);
    EXPECT_TRUE(work->getFuture()->hasError());
    work->abort();
  }
  EXPECT_THROW(allreduce(groups[0], at::ones({1})), CommError);
}

TEST_F(WorkTest, FailureOfOneRank_UnwindsTheOthers) {
  const auto outcome = run(5, [](int rank, const ProcessGroup& group) {
    if (rank == 0) allreduce(group, at::ones({1}))->wait();
    if (rank == 1) recv(group, at::ones({1}), 4)->wait();
    if (rank == 2) {
      const auto work = allreduce(group, at::ones({1}));
      while (!work->isCompleted()) {
      }
    }
    if (rank == 3) recv(group, at::ones({1}), 4)->wait(5ms);
    exec::this_rank::sleep_for(1ms);
    throw std::runtime_error("rank 4 gives up");
  });
  EXPECT_EQ(outcome.ending, exec::Ending::rank_failed);
  EXPECT_EQ(failure(outcome), "rank 4 gives up");
  EXPECT_EQ(outcome.blocked.size(), 4u);
}

TEST_F(WorkTest, CallsWhileTheWorldEnds_GoNowhere) {
  EXPECT_CALL(fabric, launch).Times(0);
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) throw std::runtime_error("over");
    try {
      allreduce(group, at::ones({1}))->wait();
    } catch (const RankAborted&) {
      allreduce(group, at::ones({2}))->wait();
    }
  });
  EXPECT_THAT(outcome.ranks, ElementsAre(exec::RankEnd::aborted, exec::RankEnd::failed));
}

}  // namespace
}  // namespace rehearse::comm
