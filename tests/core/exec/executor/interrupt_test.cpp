// SPDX-License-Identifier: BSD-3-Clause
// A request from outside ends a world at its next switch, whatever its ranks do, and unwinds every rank.
#include <rehearse_internal/exec/interrupt.h>

#include <utility>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class Interrupt : public Worlds {
 protected:
  void SetUp() override { clear_interrupt(); }
  void TearDown() override { clear_interrupt(); }

  // All ranks call `meanwhile` forever. Before that, rank 0 sleeps and then requests the interrupt, as a signal handler
  // would.
  RunOutcome interrupted(const std::function<void()>& meanwhile) {
    auto w = world();
    unwound_ = 0;
    return w.run([&](int rank) {
      struct Unwound {
        int& count;
        ~Unwound() { ++count; }
      } unwound{unwound_};
      if (rank != 0) {
        for (;;) meanwhile();
      }
      this_rank::sleep_for(3ms);
      request_interrupt();
      for (;;) meanwhile();
    });
  }

  int unwound_ = 0;
};
REHEARSE_IN_WORLDS(Interrupt);

TEST_P(Interrupt, OfRanksThatSwitch_EndsAtTheNextSwitch) {
  auto w = world();
  std::uint64_t steps = 0;
  const auto outcome = w.run([&](int) {
    for (int k = 0;; ++k) {
      if (k == 5 && !interrupt_requested()) {
        request_interrupt();
        steps = w.log.steps();
      }
      this_rank::yield();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::interrupted);
  EXPECT_EQ(outcome.stop_reason, "interrupted");
  EXPECT_EQ(w.log.steps(), steps);
  EXPECT_EQ(outcome.ranks, std::vector<RankEnd>(static_cast<std::size_t>(ranks()), RankEnd::aborted));
}

TEST_P(Interrupt, OfRanksThatSleep_EndsBeforeTimePasses) {
  const auto outcome = interrupted([] { this_rank::sleep_for(1h); });
  EXPECT_EQ(outcome.ending, Ending::interrupted);
  EXPECT_EQ(outcome.end_time, at(3ms));
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a sleep"));
  EXPECT_EQ(unwound_, ranks());
}

TEST_P(Interrupt, OfRanksThatWait_IsNoDeadlock) {
  WaitQueue never;
  const auto outcome = interrupted([&] { never.wait(FixedObserver("something")); });
  EXPECT_EQ(outcome.ending, Ending::interrupted);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "something"));
  EXPECT_EQ(unwound_, ranks());
}

TEST_P(Interrupt, OfRanksThatPoll_IsNoLivelock) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    for (int k = 0;; ++k) {
      if (rank == 0 && k == 3) request_interrupt();
      this_rank::poll();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::interrupted);
}

// A request that comes between two worlds ends the next world, unless clear_interrupt() withdraws the request.
TEST_P(Interrupt, BeforeTheRun_StartsNoRank) {
  bool started = false;
  request_interrupt();
  EXPECT_EQ(world().run([&](int) { started = true; }).ending, Ending::interrupted);
  EXPECT_FALSE(started);
  clear_interrupt();
  EXPECT_EQ(world().run([&](int) { started = true; }).ending, Ending::all_returned);
  EXPECT_TRUE(started);
}

// The interrupt comes between two steps, or when no rank can run. InterruptedAgain gives this place to a second run,
// and the second run ends there.
TEST_P(Interrupt, Again_EndsAtTheSamePlace) {
  const auto run_with = [&](int steps_before) {
    auto w = world();
    auto outcome = w.run([&](int rank) {
      for (int k = 0;; ++k) {
        if (rank == ranks() - 1 && k == steps_before) request_interrupt();
        if (k % 2 == 0) this_rank::yield();
        if (k % 2 == 1) this_rank::sleep_for(1ms * (1 + rank % 3));
      }
    });
    clear_interrupt();
    return std::pair(std::move(outcome), w.log.hash());
  };
  for (int steps = 0; steps < 12; ++steps) {
    SCOPED_TRACE(steps);
    const auto [first, hash] = run_with(steps);
    ASSERT_EQ(first.ending, Ending::interrupted);
    const InterruptedAgain place({first.switches, first.end_time});
    const auto [again, same_hash] = run_with(-1);
    EXPECT_EQ(again.ending, Ending::interrupted);
    EXPECT_EQ(again.switches, first.switches);
    EXPECT_EQ(again.end_time, first.end_time);
    EXPECT_EQ(same_hash, hash);
  }
}

TEST_P(Interrupt, AfterTheLastRankReturned_ChangesNothing) {
  int returned = 0;
  auto w = world();
  const auto outcome = w.run([&](int) {
    this_rank::yield();
    if (++returned == ranks()) request_interrupt();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
