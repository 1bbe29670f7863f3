// SPDX-License-Identifier: BSD-3-Clause
// Contract: works complete in their own rank's context, and report their end by result, future and duration.
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

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
    EXPECT_THROW(work->blockCurrentStream(), c10::Error);  // c10d's own error: there is no stream
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
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
      second = broadcast(group, at::ones({4}));  // starts a collective from a callback
    });
    while (!second) exec::this_rank::poll();
    second->wait();
    EXPECT_TRUE(future->completed());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(ran_on, ElementsAre(0, 1, 2));
}

// As PowerSGD's hook does: what ends the later call comes behind the callback that waits for it.
TEST_F(WorkTest, CallbackThatWaitsForALaterCall_LetsItEnd) {
  int ended = 0;
  const auto outcome = run(3, [&](int, const ProcessGroup& group) {
    bool inner_ended = false;
    const auto outer = allreduce(group, at::ones({2}))
                           ->getFuture()
                           ->then(
                               [&](c10::ivalue::Future&) -> c10::IValue {
                                 allreduce(group, at::ones({2}))->getFuture()->addCallback([&](c10::ivalue::Future&) {
                                   allreduce(group, at::ones({2}))->getFuture()->wait();
                                   inner_ended = true;
                                 });
                                 allreduce(group, at::ones({2}))->getFuture()->wait();
                                 return true;
                               },
                               c10::BoolType::get());
    outer->wait();
    while (!inner_ended) exec::this_rank::poll();
    ++ended;
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(ended, 3);
}

// Gloo marks the future before it ends the work.
TEST_F(WorkTest, Wait_EndsAfterTheCallbacksThatWereThere) {
  fabric.takes = 1ms;
  int ran = 0;
  const auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    for (const bool poll : {false, true}) {
      bool seen = false;
      const auto work = allreduce(group, at::ones({2}));
      work->getFuture()->addCallback([&](c10::ivalue::Future&) {
        if (rank == 0) exec::this_rank::sleep_for(5ms);
        work->wait();  // a callback sees the end at once
        seen = true;
      });
      while (poll && !work->isCompleted()) exec::this_rank::poll();
      work->wait();
      EXPECT_TRUE(seen) << rank << poll;
      ran += seen ? 1 : 0;
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(ran, 6);
}

TEST_F(WorkTest, Wait_ThrowsAfterTheCallbacksOfAFailure) {
  bool seen = false;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(3h);
    const auto work = allreduce(group, at::ones({2}));
    work->getFuture()->addCallback([&](c10::ivalue::Future& future) { seen = future.hasError(); });
    EXPECT_THROW(work->wait(), TimeoutError);
    EXPECT_TRUE(seen);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(seen);
}

TEST_F(WorkTest, Wait_WithALimitBelowTheTimeOfTheCallbacks_ThrowsAndMayBeRepeated) {
  int timeouts = 0;
  const auto outcome = run(2, [&](int, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({2}));
    work->getFuture()->addCallback([&](c10::ivalue::Future&) { exec::this_rank::sleep_for(5ms); });
    for (bool is_over = false; !is_over;) {
      try {
        is_over = work->wait(2ms);
      } catch (const TimeoutError& error) {
        EXPECT_THAT(error.what(), testing::EndsWith("; the call has ended, but its callbacks still run"));
        ++timeouts;
      }
    }
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(work->exception(), nullptr);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_GE(timeouts, 2);
}

// Gloo's barrier first waits for the rank's earlier works.
TEST_F(WorkTest, Barrier_EndsAfterTheCallbacksOfEarlierCalls) {
  int ran = 0;
  const auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    bool seen = false;
    allreduce(group, at::ones({2}))->getFuture()->addCallback([&](c10::ivalue::Future&) {
      if (rank == 0) exec::this_rank::sleep_for(5ms);
      seen = true;
    });
    group->barrier()->wait();
    EXPECT_TRUE(seen) << rank;
    ran += seen ? 1 : 0;
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(ran, 3);
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

// c10d's Reducer calls Future::wait(), which waits on a condition variable.
TEST_F(WorkTest, FutureWait_SuspendsTheRankOnly) {
  fabric.takes = 1ms;
  const auto outcome = run(4, [](int, const ProcessGroup& group) {
    const auto future = allreduce(group, at::ones({1}))->getFuture();
    future->wait();
    EXPECT_TRUE(future->hasValue());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
