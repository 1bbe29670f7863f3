// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank that has crashed or returned restarts in new fibers, after the given time. Nothing of the previous
// incarnation reaches the next one. The world waits for the next incarnation, unless a failure ends the world.
#include <functional>
#include <optional>
#include <string>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/crash.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

const FiberLocal<int> kept_in_fiber;

RankExecutor& own_executor() { return *RankExecutor::current(); }

void crash_and_begin_again(int rank, VirtualDuration after) {
  restart_rank(own_executor(), rank, after);
  crash_rank(own_executor(), rank);
}

class Restart : public Worlds {};
REHEARSE_IN_WORLDS(Restart);

TEST_P(Restart, OfACrashedRank_RunsItsBodyFromTheBeginning) {
  auto w = world();
  std::vector<std::string> starts;
  const auto outcome = w.run([&](int rank) {
    if (rank != 1) return;
    starts.push_back(std::to_string(incarnation(own_executor(), 1)) + " at " +
                     std::to_string((this_rank::now() - kTimeZero) / 1ms) + " ms");
    EXPECT_EQ(this_rank::fiber_of_rank(), 0u);
    EXPECT_EQ((*kept_in_fiber)++, 0);
    if (starts.size() < 3) crash_and_begin_again(1, 5ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.ranks, std::vector<RankEnd>(static_cast<std::size_t>(ranks()), RankEnd::returned));
  EXPECT_EQ(starts, (std::vector<std::string>{"0 at 0 ms", "1 at 5 ms", "2 at 10 ms"}));
  EXPECT_EQ(outcome.ended_at[1], at(10ms));
}

TEST_P(Restart, OfARankThatHasReturned_RunsItAgain) {
  auto w = world();
  int starts = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0 && starts++ == 0) restart_rank(own_executor(), 0, 5ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(starts, 2);
  EXPECT_EQ(outcome.ended_at[0], at(5ms));
}

TEST_P(Restart, OfAllRanks_IsWaitedFor) {
  auto w = world();
  int begun = 0;
  const auto outcome = w.run([&](int rank) {
    ++begun;
    if (incarnation(own_executor(), rank) == 0) crash_and_begin_again(rank, 5ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(begun, 2 * ranks());
  EXPECT_EQ(outcome.end_time, at(5ms));
}

TEST_P(Restart, TimersOfTheFormerIncarnation_DoNotWakeTheNextOne) {
  auto w = world();
  VirtualTime woken{};
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1ms);
      restart_rank(own_executor(), 1, 1ms);
      crash_rank(own_executor(), 1);
    }
    if (rank != 1) return;
    this_rank::sleep_for(incarnation(own_executor(), 1) == 0 ? 5ms : 10ms);
    woken = this_rank::now();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(woken, at(12ms));
}

TEST_P(Restart, WorkOfTheFormerIncarnation_IsNotRun) {
  auto w = world();
  bool ran = false;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0 || incarnation(own_executor(), 0) > 0) return this_rank::sleep_for(1ms);
    own_executor().spawn([&] {
      this_rank::sleep_for(7ms);
      ran = true;
    });
    this_rank::yield();
    own_executor().post(0, [&] { ran = true; });
    crash_and_begin_again(0, 5ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_FALSE(ran);
}

TEST_P(Restart, OfARunningRank_DoesNothing) {
  auto w = world();
  int begun = 0, told = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    ++begun;
    restart_rank(own_executor(), 0, 1ms, [&] { ++told; });
    this_rank::sleep_for(5ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(told, 0);
}

// Waiting for the restart is no hang, because the next incarnation wakes the ranks that wait for it.
TEST_P(Restart, Others_WaitForTheNextIncarnation) {
  auto w = world();
  WaitQueue back;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return void(back.wait(FixedObserver("rank 0")));
    if (incarnation(own_executor(), 0) == 0) crash_and_begin_again(0, 5ms);
    back.notify_all();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(5ms));
}

TEST_P(Restart, RestartedRank_IsToBeginAgainUntilItHas) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return this_rank::sleep_for(10ms);
    EXPECT_FALSE(is_to_begin_again(own_executor(), 1));
    restart_rank(own_executor(), 1, 5ms);
    EXPECT_TRUE(is_to_begin_again(own_executor(), 1));
    EXPECT_FALSE(is_to_begin_again(own_executor(), 0));
    this_rank::sleep_for(6ms);
    EXPECT_FALSE(is_to_begin_again(own_executor(), 1));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

// The current time plus the given time would overflow to a time in the past.
TEST_P(Restart, BehindTheEndOfTime_IsAtItsEnd) {
  auto w = world();
  VirtualTime begun_again{};
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    if (incarnation(own_executor(), 0) > 0) return void(begun_again = this_rank::now());
    this_rank::sleep_for(1ms);
    crash_and_begin_again(0, VirtualDuration::max());
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(begun_again, VirtualTime::max());
}

class EndOfHold final : public Timer {
 public:
  std::optional<WorldHold> hold;
  std::function<void()> then;

 private:
  void fire() override {
    if (then) then();
    hold.reset();
  }
};

TEST_P(Restart, AWorldThatIsHeld_GoesOnWithoutRanks) {
  auto w = world();
  EndOfHold timer;
  int starts = 0;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0 || starts++ > 0) return;
    auto& executor = own_executor();
    timer.hold.emplace(executor);
    timer.then = [&executor] { restart_rank(executor, 0, 2ms); };
    executor.timers().arm(timer, at(5ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(starts, 2);
  EXPECT_EQ(outcome.end_time, at(7ms));
}

TEST_P(Restart, AWorldThatWasHeldForNothing_EndsWhenItIsLetGo) {
  auto w = world();
  EndOfHold timer;
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    timer.hold.emplace(own_executor());
    own_executor().timers().arm(timer, at(5ms));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, at(5ms));
}

TEST_P(Restart, ThatIsDue_IsCalledOffAtTheWorldsEnd) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) crash_and_begin_again(1, 5ms);
    if (rank == 0) throw std::runtime_error("no more");
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_LT(outcome.end_time, at(5ms));
}

}  // namespace
}  // namespace rehearse::exec::test
