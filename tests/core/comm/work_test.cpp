// SPDX-License-Identifier: BSD-3-Clause
// Contract: works complete in their own rank's context, time out in virtual time naming who is missing, and are
// harmless after their world.
#include <numeric>

#include "test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using WorkTest = CommTest;

TEST_F(WorkTest, Duration_IsVirtualTimeFromTheLastArrival) {
  fabric.takes = 3ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) exec::this_rank::sleep_for(10ms);
    const auto work = allreduce(group, at::ones({1}));
    EXPECT_THROW(work->getDuration(), c10::Error);
    work->wait();
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 13ms);
    EXPECT_EQ(work->getDuration(), 3.0f);
    EXPECT_TRUE(work->isCompleted());
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(work->exception(), nullptr);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, Polling_LetsTheOthersComeAndTimePass) {
  fabric.takes = 1ms;
  const auto outcome = run(3, [](int, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    while (!work->isCompleted()) {
    }
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 1ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, OperationTimeout_CountsFromEachRanksCall) {
  options.timeout = 100ms;
  const auto outcome = run(4, [](int rank, const ProcessGroup& group) {
    if (rank == 3) return exec::this_rank::sleep_for(1s);
    exec::this_rank::sleep_for(rank * 10ms);
    const auto work = allreduce(group, at::ones({1}));
    exec::this_rank::sleep_for(5ms);
    try {
      work->wait();
      ADD_FAILURE();
    } catch (const TimeoutError& error) {
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + rank * 10ms + 100ms);
      EXPECT_STREQ(error.what(),
                   "allreduce #1 on group \"world\" timed out after 100 ms of virtual time; missing ranks: 3");
      EXPECT_THAT(error.ranks(), ElementsAre(3));
      EXPECT_EQ(error.sequence(), 1u);
    }
    EXPECT_FALSE(work->isSuccess());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(outcome.hang.empty());
  EXPECT_THAT(pending, testing::Each(testing::Field(&PendingOperation::gave_up, true)));
}

// A given timeout counts from the wait, may be tried again, and changes nothing for the operation.
TEST_F(WorkTest, GivenTimeout_CanBeTriedAgain) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) exec::this_rank::sleep_for(25ms);
    const auto work = allreduce(group, at::ones({1}));
    int tries = 0;
    for (bool done = false; !done; ++tries) {
      try {
        done = work->wait(10ms);
      } catch (const TimeoutError& error) {
        EXPECT_THAT(error.what(), HasSubstr("timed out after 10 ms of virtual time; missing ranks: 1"));
      }
    }
    EXPECT_EQ(tries, rank == 0 ? 3 : 1);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, SlowTransfer_TimesOutWithoutMissingRanks) {
  fabric.takes = 1s;
  run(2, [](int, const ProcessGroup& group) {
    try {
      allreduce(group, at::ones({1}))->wait(10ms);
      ADD_FAILURE();
    } catch (const TimeoutError& error) {
      EXPECT_THAT(error.what(), HasSubstr("all ranks are there, the transfer takes longer"));
      EXPECT_TRUE(error.ranks().empty());
    }
  });
}

TEST_F(WorkTest, ZeroTimeout_IsNone) {
  options.timeout = 0ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) allreduce(group, at::ones({1}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::deadlock);
  EXPECT_EQ(outcome.blocked.at(0).waits_on, "allreduce #1 on group \"world\" (1 of 2 ranks are here)");
  EXPECT_NE(outcome.blocked.at(0).fingerprint, 0u);
}

TEST_F(WorkTest, Receive_TimesOutToo) {
  options.timeout = 20ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) recv(group, at::ones({1}), 1)->wait();
  });
  EXPECT_EQ(failure(outcome),
            "recv #1 from rank 1 on group \"world\" timed out after 20 ms of virtual time; missing ranks: 1");
  EXPECT_EQ(outcome.end_time, kTimeZero + 20ms);
}

// The call no longer counts: with NCCL the others hang too, and the report must say for whom.
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

TEST_F(WorkTest, FutureResult_SaysHowItWent) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    const auto before = work->getFutureResult();
    work->wait();
    before->wait();
    EXPECT_EQ(before->value().toInt(), static_cast<int>(c10d::WorkResult::SUCCESS));
    EXPECT_EQ(work->getFutureResult(), before);
    if (rank == 1) return exec::this_rank::sleep_for(20ms);
    const auto late = allreduce(group, at::ones({1}));
    EXPECT_FALSE(late->getFutureResult()->completed());
    EXPECT_THROW(late->wait(1ms), TimeoutError);
    EXPECT_EQ(late->getFutureResult()->value().toInt(), static_cast<int>(c10d::WorkResult::TIMEOUT));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, Result_OnlyWhenComplete) {
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    const auto tensor = at::ones({1});
    const auto work = broadcast(group, tensor);
    if (!work->isSuccess()) {
      EXPECT_THROW(work->result(), c10::Error);
    }
    work->wait();
    ASSERT_EQ(work->result().size(), 1u);
    EXPECT_TRUE(work->result()[0].is_same(tensor));
    EXPECT_THROW(work->sourceRank(), c10::Error);
    EXPECT_NO_THROW(work->synchronize());
    EXPECT_EQ(work->retrieveOpType(), c10d::OpType::BROADCAST);
    EXPECT_THROW(work->blockCurrentStream(), c10::Error);  // c10d's own: there is no stream
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, MonitoredBarrier_PassesWhenAllCome) {
  fabric.takes = 1ms;
  const auto outcome = run(3, [](int, const ProcessGroup& group) {
    group->monitoredBarrier({});
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 1ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, MonitoredBarrier_NamesTheMissingRanks) {
  for (const bool all : {false, true}) {
    clock = {};
    std::string text, others, late;
    const auto outcome = run(5, [&](int rank, const ProcessGroup& group) {
      c10d::BarrierOptions barrier;
      barrier.timeout = 1000ms;
      if (rank == 3) return;
      if (rank == 2) exec::this_rank::sleep_for(2s);
      try {
        group->monitoredBarrier(barrier, all);
        ADD_FAILURE();
      } catch (const CommError& error) {
        (rank == 0 ? text : rank == 2 ? late : others) = error.what();
        EXPECT_EQ(exec::this_rank::now(), kTimeZero + (rank == 2 ? 2s : 1s));
      }
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_EQ(text, all ? "[Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 1000 ms"
                        : "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 1000 ms");
    EXPECT_THAT(others, HasSubstr("Rank 4 successfully reached monitoredBarrier, but received errors"));
    EXPECT_THAT(late, HasSubstr("Rank 2 successfully reached monitoredBarrier"));
  }
}

TEST_F(WorkTest, Future_HoldsTheOutputsAndRunsCallbacksInItsRank) {
  std::vector<int> ran_on(3, -1);
  const auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    if (rank == 1) exec::this_rank::sleep_for(1ms);
    const auto tensor = at::full({2}, rank);
    const auto future = allreduce(group, tensor)->getFuture();
    WorkPtr second;
    future->addCallback([&, rank](c10::ivalue::Future& done) {
      ran_on[static_cast<std::size_t>(rank)] = exec::this_rank::rank();
      EXPECT_TRUE(done.value().toTensorVector().at(0).is_same(tensor));
      second = broadcast(group, at::ones({4}));  // a collective from within a callback
    });
    while (!second) exec::this_rank::poll();
    second->wait();
    EXPECT_TRUE(future->completed());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(ran_on, ElementsAre(0, 1, 2));
}

TEST_F(WorkTest, FutureOfCompletedWork_IsMarkedAtOnce) {
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    work->wait();
    const auto future = work->getFuture();
    EXPECT_TRUE(future->completed());
    EXPECT_EQ(work->getFuture(), future);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// c10d's Reducer waits for a future with a condition variable.
TEST_F(WorkTest, FutureWait_SuspendsTheRankOnly) {
  fabric.takes = 1ms;
  const auto outcome = run(4, [](int, const ProcessGroup& group) {
    const auto future = allreduce(group, at::ones({1}))->getFuture();
    future->wait();
    EXPECT_TRUE(future->hasValue());
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
    works.push_back(broadcast(group, at::ones({1})));  // under way for ever
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

// Ranks in every kind of wait when one fails: all unwind, nothing is left behind.
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
