// SPDX-License-Identifier: BSD-3-Clause
// Contract: waits time out in virtual time, by the timeout of the operation or of the wait, and name the missing ranks.
#include "core/comm/test_world.h"

#include <rehearse_internal/comm/rank_backend.h>

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using WorkTest = CommTest;

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
                   "allreduce #1 on group \"world\": Timed out waiting 100ms of virtual time; missing rank 3");
      EXPECT_THAT(error.ranks(), ElementsAre(3));
      EXPECT_EQ(error.sequence(), 1u);
    }
    EXPECT_FALSE(work->isSuccess());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(outcome.hang.empty());
  EXPECT_THAT(pending, testing::Each(testing::Field(&PendingOperation::gave_up, true)));
}

// A timeout passed to wait() counts from that wait. The wait may be repeated, and the operation keeps its own timeout.
TEST_F(WorkTest, GivenTimeout_CanBeTriedAgain) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) exec::this_rank::sleep_for(25ms);
    const auto work = allreduce(group, at::ones({1}));
    int tries = 0;
    for (bool done = false; !done; ++tries) {
      try {
        done = work->wait(10ms);
      } catch (const TimeoutError& error) {
        EXPECT_THAT(error.what(), HasSubstr("Timed out waiting 10ms of virtual time; missing rank 1"));
        EXPECT_NE(work->exception(), nullptr);
      }
    }
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(work->exception(), nullptr);
    EXPECT_EQ(tries, rank == 0 ? 3 : 1);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, SlowTransfer_TimesOutWithoutMissingRanks) {
  fabric.takes = 1s;
  int timed_out = 0;
  const auto outcome = run(2, [&](int, const ProcessGroup& group) {
    try {
      allreduce(group, at::ones({1}))->wait(10ms);
      ADD_FAILURE();
    } catch (const TimeoutError& error) {
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + 10ms);
      EXPECT_THAT(error.what(), HasSubstr("all ranks have called it, but the transfer takes longer"));
      EXPECT_TRUE(error.ranks().empty());
      ++timed_out;
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(timed_out, 2);
}

// Code that wants to wait forever passes milliseconds::max().
TEST_F(WorkTest, LongestTimeout_NeverComes) {
  options.timeout = std::chrono::milliseconds::max();
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) exec::this_rank::sleep_for(1h);
    EXPECT_TRUE(allreduce(group, at::ones({1}))->wait());
    if (rank == 0) exec::this_rank::sleep_for(1h);
    EXPECT_TRUE(allreduce(group, at::ones({1}))->wait(std::chrono::milliseconds::max()));
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 2h);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// If the timeout is milliseconds::max(), a missing rank is a deadlock. The clock must not jump to the end of time.
TEST_F(WorkTest, LongestTimeout_EndsNoDeadlock) {
  options.timeout = std::chrono::milliseconds::max();
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) allreduce(group, at::ones({1}))->wait(std::chrono::milliseconds::max());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::deadlock) << failure(outcome);
  EXPECT_EQ(outcome.end_time, kTimeZero);
}

TEST_F(WorkTest, ZeroTimeout_IsNone) {
  options.timeout = 0ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) allreduce(group, at::ones({1}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::deadlock);
  EXPECT_EQ(outcome.blocked.at(0).waits_on, "allreduce #1 on group \"world\" (1 of 2 ranks has called it)");
  EXPECT_EQ(outcome.blocked.at(0).kind, exec::Wait::Kind::call);
}

TEST_F(WorkTest, Receive_TimesOutToo) {
  options.timeout = 20ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) recv(group, at::ones({1}), 1)->wait();
  });
  EXPECT_EQ(failure(outcome),
            "recv #1 from rank 1 on group \"world\": Timed out waiting 20ms of virtual time; missing rank 1");
  EXPECT_EQ(outcome.end_time, kTimeZero + 20ms);
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

// Without wait_all_ranks, a barrier with a timeout of 0 fails in every group of several ranks, in whatever order they
// come, because Gloo computes the remaining time before it waits.
TEST_F(WorkTest, MonitoredBarrierWithoutTime_FailsAtOnce) {
  for (const int ranks : {2, 3, 8}) {
    for (const int first : {0, 1}) {
      clock = {};
      const auto outcome = run(ranks, [&](int rank, const ProcessGroup& group) {
        c10d::BarrierOptions barrier;
        barrier.timeout = 0ms;
        const auto start = kTimeZero + (rank == first ? 0ms : 10ms);
        exec::this_rank::sleep_for(start - exec::this_rank::now());
        try {
          group->monitoredBarrier(barrier, false);
          ADD_FAILURE() << "rank " << rank << " of " << ranks;
        } catch (const CommError& error) {
          EXPECT_EQ(exec::this_rank::now(), first == 1 && rank == 1 ? kTimeZero + 10ms : start);
          const std::string text = rank == 0
                                       ? "Rank 0 timed out in monitoredBarrier after 0 ms.\n"
                                         "No ranks successfully processed in monitoredBarrier."
                                       : "Rank " + std::to_string(rank) + " successfully reached monitoredBarrier";
          EXPECT_THAT(error.what(), testing::StartsWith(text));
          EXPECT_EQ(dynamic_cast<const TimeoutError*>(&error) != nullptr, rank == 0);
        }
        EXPECT_TRUE(group->barrier()->wait());
      });
      EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
      EXPECT_TRUE(mismatches.empty());
    }
  }
}

// With wait_all_ranks, a timeout of 0 means the group's timeout, as in Gloo. In a group of one rank, the barrier
// passes, because there are no other ranks to wait for.
TEST_F(WorkTest, MonitoredBarrierWithoutTime_MayPass) {
  c10d::BarrierOptions barrier;
  barrier.timeout = 0ms;
  auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    exec::this_rank::sleep_for(rank * 10ms);
    group->monitoredBarrier(barrier, true);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  outcome = run(1, [&](int, const ProcessGroup& group) { group->monitoredBarrier(barrier, false); });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// c10d's back ends have this function since LibTorch 2.14.
template <class Backend>
void extend_once(Backend& backend, std::chrono::milliseconds duration) {
  if constexpr (requires { backend.addEphemeralTimeout(duration); }) {
    backend.addEphemeralTimeout(duration);
  } else {
    dynamic_cast<RankBackend&>(backend).extend_timeout_once(duration);
  }
}

void extend_once(const ProcessGroup& group, std::chrono::milliseconds duration) {
  extend_once(*group->getDefaultBackend(), duration);
}

// Calls an all-reduce that rank 1 never calls. Returns the time until it fails.
std::chrono::milliseconds limit_of_call(const ProcessGroup& group) {
  const auto begin = exec::this_rank::now();
  EXPECT_THROW(allreduce(group, at::ones({1}))->wait(), TimeoutError);
  return std::chrono::duration_cast<std::chrono::milliseconds>(exec::this_rank::now() - begin);
}

// As in NCCL, the first call after an extension has the longer timeout. So do all calls that start before the first
// call ends.
TEST_F(WorkTest, ExtendedOnce_TheNextCallHasMoreTime) {
  options.timeout = 100ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(10s);
    extend_once(group, 50ms);
    extend_once(group, 0ms);
    extend_once(group, 20ms);
    EXPECT_EQ(limit_of_call(group), 170ms);
    EXPECT_EQ(limit_of_call(group), 100ms);
    c10d::AllreduceOptions unlimited;
    unlimited.timeout = 0ms;
    extend_once(group, 50ms);
    std::vector<at::Tensor> tensors{at::ones({1})};
    EXPECT_THROW(group->allreduce(tensors, unlimited)->wait(300ms), TimeoutError);  // the call has no limit to extend
    EXPECT_EQ(limit_of_call(group), 150ms);
    EXPECT_EQ(limit_of_call(group), 100ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, ExtendedOnce_CallsBesideTheFirstHaveItToo) {
  options.timeout = 100ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) {
      exec::this_rank::sleep_for(130ms);
      allreduce(group, at::ones({1}))->wait();
      return exec::this_rank::sleep_for(10s);
    }
    extend_once(group, 50ms);
    const auto first = allreduce(group, at::ones({1}));
    exec::this_rank::sleep_for(10ms);
    const auto second = allreduce(group, at::ones({1}));
    extend_once(group, 30ms);  // calls from here on have 80 ms more
    const auto third = allreduce(group, at::ones({1}));
    EXPECT_TRUE(first->wait());
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 130ms);
    const auto fourth = allreduce(group, at::ones({1}));  // the first call has ended, and with it its extra 50 ms
    EXPECT_THROW(second->wait(), TimeoutError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 160ms);
    EXPECT_THROW(third->wait(), TimeoutError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 190ms);
    EXPECT_THROW(fourth->wait(), TimeoutError);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 260ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(WorkTest, ExtendedOnce_ACallThatIsRefusedTakesNothing) {
  options.timeout = 100ms;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(10s);
    EXPECT_THROW(extend_once(group, -1ms), c10::Error);
    extend_once(group, 50ms);
    std::vector<at::Tensor> none;
    EXPECT_THROW(group->allreduce(none), c10::Error);
    EXPECT_EQ(limit_of_call(group), 150ms);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
