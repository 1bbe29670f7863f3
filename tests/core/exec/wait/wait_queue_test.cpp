// SPDX-License-Identifier: BSD-3-Clause
// The fibers that a queue wakes, their order, and the results of their waits.
#include <vector>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class WaitQueues : public Worlds {};
REHEARSE_IN_WORLDS(WaitQueues);

TEST_P(WaitQueues, NotifyOne_WakesInOrderOfArrival) {
  auto w = world();
  WaitQueue queue;
  std::vector<int> came;
  std::vector<int> woken;
  const auto outcome = w.run([&](int rank) {
    if (rank > 0) {
      came.push_back(rank);
      EXPECT_EQ(queue.wait(FixedObserver("its turn")), WaitResult::notified);
      woken.push_back(rank);
      return;
    }
    this_rank::sleep_for(1ms);
    EXPECT_EQ(came.size(), static_cast<std::size_t>(ranks() - 1));
    for (std::size_t told = 1; queue.notify_one(); ++told) {
      this_rank::sleep_for(1ms);
      EXPECT_EQ(woken.size(), told);
    }
    EXPECT_TRUE(queue.empty());
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(woken, came);
}

// Odd ranks leave the queue from the front, the back and the middle. The even ranks stay in order.
TEST_P(WaitQueues, LimitsComeInTheMiddle_TheOthersStayInOrder) {
  auto w = world();
  WaitQueue queue;
  std::vector<int> stayed;
  std::vector<int> woken;
  int left = 0;
  const auto outcome = w.run([&](int rank) {
    const auto limit = at(std::chrono::milliseconds(rank));
    if (rank % 2 == 1) {
      EXPECT_EQ(queue.wait(FixedObserver("nothing"), limit), WaitResult::timed_out);
      EXPECT_EQ(this_rank::now(), limit);
      ++left;
    } else if (rank > 0) {
      stayed.push_back(rank);
      EXPECT_EQ(queue.wait(FixedObserver("its turn"), at(1s)), WaitResult::notified);
      woken.push_back(rank);
    } else {
      this_rank::sleep_for(500ms);
      EXPECT_EQ(left, ranks() / 2);
      while (queue.notify_one()) this_rank::sleep_for(1ms);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(woken, stayed);
}

TEST_P(WaitQueues, TimeOutAll_EndsEveryWait_AndTheQueueServesAgain) {
  auto w = world();
  WaitQueue queue;
  int timed_out = 0;
  int notified = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank > 0) {
      timed_out += queue.wait(FixedObserver("nothing")) == WaitResult::timed_out ? 1 : 0;
      notified += queue.wait(FixedObserver("its turn")) == WaitResult::notified ? 1 : 0;
      return;
    }
    this_rank::sleep_for(1ms);
    queue.time_out_all();
    EXPECT_TRUE(queue.empty());
    this_rank::sleep_for(1ms);
    EXPECT_EQ(queue.notify_all(), static_cast<std::size_t>(ranks() - 1));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(timed_out, ranks() - 1);
  EXPECT_EQ(notified, ranks() - 1);
}

class Notifier final : public Timer {
 public:
  explicit Notifier(WaitQueue& queue) : queue_(queue) {}

 private:
  void fire() override { queue_.notify_all(); }

  WaitQueue& queue_;
};

// Nothing runs between two timers of one instant. The timeout reaches a fiber that has left the queue but has not run
// yet.
TEST(WaitQueue, NotifiedAtTheInstantOfItsLimit_ThenLimitComes_TimedOutOnce) {
  World w(2);
  WaitQueue queue;
  Notifier notifier(queue);
  Decisions decisions(w.oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  executor.timers().arm(notifier, at(5ms));
  std::vector<WaitResult> results(2, WaitResult::notified);
  const auto outcome = executor.run([&](int rank) {
    results[static_cast<std::size_t>(rank)] =
        rank == 0 ? queue.wait(FixedObserver("both"), at(5ms)) : queue.wait(FixedObserver("the notifier"), at(6ms));
    EXPECT_EQ(this_rank::now(), at(5ms));
    EXPECT_TRUE(queue.empty());
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(results, (std::vector{WaitResult::timed_out, WaitResult::notified}));
}

}  // namespace
}  // namespace rehearse::exec::test
