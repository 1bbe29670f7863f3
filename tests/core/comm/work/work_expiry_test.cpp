// SPDX-License-Identifier: BSD-3-Clause
// Contract: at its timeout an operation fails by itself, whether or not a rank waits. It is then over, also for ranks
// that arrive later, and the group goes on with the next operation.
#include <rehearse/exec/wait_queue.h>

#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using WorkExpiry = CommTest;

std::string text_of(const std::exception_ptr& error) {
  try {
    if (error != nullptr) std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
  return "";
}

TEST_F(WorkExpiry, FailsWithoutAWait_AndTellsFuturesCallbacksAndPolls) {
  options.timeout = 100ms;
  EXPECT_CALL(fabric, launch).Times(0);
  for (const int ranks : {2, 3, 8}) {
    clock = {};
    int told = 0;
    const auto outcome = run(ranks, [&](int rank, const ProcessGroup& group) {
      if (rank == ranks - 1) return exec::this_rank::sleep_for(2s);
      exec::this_rank::sleep_for(rank * 1ms);
      const auto work = allreduce(group, at::ones({1}));
      work->getFuture()->addCallback([&](c10::ivalue::Future& future) {
        EXPECT_TRUE(future.hasError());
        EXPECT_EQ(exec::this_rank::rank(), rank);
        EXPECT_EQ(exec::this_rank::now(), kTimeZero + rank * 1ms + 100ms);
        ++told;
      });
      exec::this_rank::sleep_for(1s);
      const auto text = "allreduce #1 on group \"world\": Timed out waiting 100ms of virtual time; missing rank " +
                        std::to_string(ranks - 1);
      EXPECT_TRUE(work->isCompleted());
      EXPECT_FALSE(work->isSuccess());
      EXPECT_EQ(text_of(work->exception()), text);
      EXPECT_THROW(work->getFuture()->value(), TimeoutError);
      EXPECT_EQ(work->getFutureResult()->value().toInt(), static_cast<int>(c10d::WorkResult::TIMEOUT));
      EXPECT_EQ(group->getDefaultBackend()->getError(), c10d::ErrorType::TIMEOUT);
      for (int twice = 0; twice < 2; ++twice) {
        try {
          work->wait();
          ADD_FAILURE() << "no timeout";
        } catch (const TimeoutError& error) {
          EXPECT_EQ(error.what(), text);
          EXPECT_THAT(error.ranks(), ElementsAre(ranks - 1));
        }
      }
      EXPECT_LT(exec::this_rank::now(), kTimeZero + rank * 1ms + 1s + 1ms);  // the second failure is immediate
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_EQ(told, ranks - 1);
  }
}

TEST_F(WorkExpiry, LatePeer_FailsAtOnceAndTheNextCallWorks) {
  options.timeout = 100ms;
  int launched = 0;
  ON_CALL(fabric, launch).WillByDefault([&](const Transfer& transfer, Completion& done) {
    EXPECT_EQ(transfer.sequence, 2u);
    ++launched;
    done.on_complete();
  });
  for (const int ranks : {2, 3, 8}) {
    clock = {};
    const auto outcome = run(ranks, [&](int rank, const ProcessGroup& group) {
      const bool late = rank == ranks - 1;
      if (late) exec::this_rank::sleep_for(150ms);
      const auto work = allreduce(group, at::ones({1}));
      try {
        work->wait();
        ADD_FAILURE() << "rank " << rank;
      } catch (const TimeoutError& error) {
        EXPECT_EQ(exec::this_rank::now(), kTimeZero + (late ? 150ms : 100ms));
        const std::string gone = ranks == 2 ? "rank 0" : "ranks 0-" + std::to_string(ranks - 2);
        const std::string text =
            late ? "allreduce #1 on group \"world\" is over: it timed out on " + gone + " at 100 ms of virtual time"
                 : "allreduce #1 on group \"world\": Timed out waiting 100ms of virtual time; missing rank " +
                       std::to_string(ranks - 1);
        EXPECT_EQ(error.what(), text);
        EXPECT_EQ(error.ranks().size(), late ? static_cast<std::size_t>(ranks - 1) : std::size_t{1});
      }
      EXPECT_EQ(group->getDefaultBackend()->getError(), late ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::TIMEOUT);
      exec::this_rank::sleep_for(1s);
      EXPECT_TRUE(allreduce(group, at::ones({1}))->wait());
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(pending.empty());
  }
  EXPECT_EQ(launched, 3);
}

// Rank 0's call times out before rank 2, the last rank, arrives. Rank 1's call has no timeout, and fails when rank 2
// arrives.
TEST_F(WorkExpiry, WhenAllHaveCome_TheRestFailsToo) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    group->getDefaultBackend()->setTimeout(rank == 0 ? 10ms : rank == 1 ? 0ms : 50ms);
    if (rank == 2) exec::this_rank::sleep_for(30ms);
    EXPECT_THROW(allreduce(group, at::ones({1}))->wait(), CommError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + (rank == 0 ? 10ms : 30ms));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkExpiry, TransferThatTakesLonger_IsCalledOff) {
  options.timeout = 100ms;
  fabric.takes = 1s;
  EXPECT_CALL(fabric, cancel).Times(2);
  for (const bool message : {false, true}) {
    clock = {};
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
      if (rank == 1) exec::this_rank::sleep_for(20ms);
      const auto tensor = at::ones({1});
      const auto work = !message    ? allreduce(group, tensor)
                        : rank == 0 ? send(group, tensor, 1)
                                    : recv(group, tensor, 0);
      EXPECT_THROW(work->wait(), CommError);
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + 100ms);
      EXPECT_THAT(text_of(work->exception()), rank == 0
                                                  ? HasSubstr("all ranks have called it, but the transfer takes longer")
                                                  : HasSubstr("timed out"));
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(pending.empty());
  }
}

// Gloo's barrier waits for its rank's earlier calls, and fails with their error.
TEST_F(WorkExpiry, BarrierAfterIt_GetsTheSameError) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    if (rank == 2) return exec::this_rank::sleep_for(1s);
    group->getDefaultBackend()->setTimeout(rank == 0 ? 50ms : 70ms);
    const auto work = allreduce(group, at::ones({1}));
    group->getDefaultBackend()->setTimeout(30min);
    try {
      group->barrier()->wait();
      ADD_FAILURE() << "rank " << rank;
    } catch (const TimeoutError& error) {
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + (rank == 0 ? 50ms : 70ms));
      EXPECT_THAT(error.what(), HasSubstr("allreduce #1 on group \"world\": Timed out waiting "));
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// A failure that the program never asks for is not known to it, even if a barrier fails with the same error.
TEST_F(WorkExpiry, BarrierAfterIt_DoesNotMakeItKnown) {
  options.timeout = 50ms;
  WorkPtr call, barrier;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(1s);
    call = allreduce(group, at::ones({1}));
    barrier = group->barrier();
    exec::this_rank::sleep_for(1s);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  ASSERT_EQ(pending.size(), 2u);
  EXPECT_THAT(pending, testing::Each(testing::Field(&PendingOperation::timed_out, true)));
  EXPECT_THAT(pending, testing::Each(testing::Field(&PendingOperation::gave_up, false)));
}

TEST_F(WorkExpiry, BarrierThatWaitsForATransfer_EndsWithIt) {
  fabric.takes = 1s;
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    group->getDefaultBackend()->setTimeout(50ms);
    const auto work = allreduce(group, at::ones({1}));
    group->getDefaultBackend()->setTimeout(30min);
    EXPECT_THROW(group->barrier()->wait(), CommError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 50ms);
    EXPECT_TRUE(group->barrier()->wait());
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 1050ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkExpiry, MessageWithoutASender_IsOverForALateSenderToo) {
  for (const bool buffered : {false, true}) {
    clock = {};
    options.buffered_sends = buffered;
    const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
      if (rank == 1) {
        exec::this_rank::sleep_for(2s);
        try {
          send(group, at::ones({1}), 0)->wait();
          ADD_FAILURE() << "sent to nobody";
        } catch (const TimeoutError& error) {
          EXPECT_STREQ(error.what(),
                       "send #1 to rank 0 on group \"world\" has no peer any more: recv #1 from rank 1 on group "
                       "\"world\" of rank 0 timed out at 100 ms of virtual time");
        }
        EXPECT_EQ(group->getDefaultBackend()->getError(), c10d::ErrorType::COMM_ERROR);
        return send(group, at::ones({1}), 0)->wait(), void();
      }
      group->getDefaultBackend()->setTimeout(100ms);
      const auto work = recv(group, at::ones({1}), 1);
      exec::this_rank::sleep_for(1s);
      EXPECT_TRUE(work->isCompleted());
      EXPECT_THROW(work->wait(), TimeoutError);
      group->getDefaultBackend()->setTimeout(30min);
      EXPECT_TRUE(recv(group, at::ones({1}), 1)->wait());
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(pending.empty());
  }
}

// Later calls may have earlier deadlines, and some calls end before their deadline.
TEST_F(WorkExpiry, Messages_ExpireInOrderOfTheirDeadlines) {
  std::vector<int> order;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    std::vector<WorkPtr> works;
    if (rank == 1) {
      exec::this_rank::sleep_for(5ms);
      for (const int tag : {2, 4}) send(group, at::ones({1}), 0, tag)->wait();
      return exec::this_rank::sleep_for(1s);
    }
    for (const int tag : {0, 1, 2, 3, 4, 5}) {
      group->getDefaultBackend()->setTimeout(std::chrono::milliseconds(tag % 2 == 0 ? 60 - tag : 10 + tag));
      works.push_back(recv(group, at::ones({1}), 1, tag));
      works.back()->getFuture()->addCallback(
          [&order, tag](auto& future) { order.push_back(future.hasError() ? tag : -tag); });
    }
    exec::this_rank::sleep_for(500ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(order, ElementsAre(-2, -4, 1, 3, 5, 0));
}

// A complete work must leave no timer, because the timer would delay the detection of a hang.
TEST_F(WorkExpiry, CompleteWork_LeavesNoTimer) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    allreduce(group, at::ones({1}))->wait();
    (rank == 0 ? send(group, at::ones({1}), 1) : recv(group, at::ones({1}), 0))->wait();
    exec::this_rank::sleep_for(1ms);
    exec::WaitQueue nobody_notifies;
    nobody_notifies.wait(exec::FixedObserver("nothing"));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::deadlock);
  EXPECT_EQ(outcome.end_time, kTimeZero + 1ms);
}

// Rank 0 never waits for its call, so it does not notice the timeout.
TEST_F(WorkExpiry, WithoutAQuestion_TheProgramDoesNotKnow) {
  options.timeout = 10ms;
  run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) allreduce(group, at::ones({1}));
    exec::this_rank::sleep_for(1s);
  });
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_TRUE(pending[0].timed_out);
  EXPECT_FALSE(pending[0].gave_up);
  EXPECT_THAT(pending[0].waits_for, ElementsAre(1));
}

}  // namespace
}  // namespace rehearse::comm
