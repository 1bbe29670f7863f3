// SPDX-License-Identifier: BSD-3-Clause
// Contract: the executor calls its idle policy's poll() every `switches_between_polls` switches, outside of any rank,
// and never if that option is 0. The tests call this a look.
#include <cerrno>
#include <vector>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

// Counts the looks. Ends the run with a deadlock when no fiber can run, unless `opens_at_once` wakes a fiber.
class Looking final : public IdlePolicy {
 public:
  void poll() noexcept override {
    ++polls;
    if (this_rank::is_fiber() || rank_of_thread().rank != -1) ++looks_as_a_rank;
    errno = EPIPE;
    if (polls == opens_at) queue.notify_all();
    if (opens_at_once) queue.notify_all();
    if (polls == interrupts_at) request_interrupt();
  }
  IdleStep next(const IdleFacts&) override {
    if (opens_at_once && queue.notify_all() > 0) return IdleStep::poll_again();
    return IdleStep::end_run(Ending::deadlock, "nobody can go on");
  }
  std::optional<IdleEnd> time_passed() override { return std::nullopt; }

  WaitQueue queue;
  int opens_at = -1;
  bool opens_at_once = false;
  int interrupts_at = -1;
  int polls = 0;
  int looks_as_a_rank = 0;
};

class Looks : public ::testing::Test {
 protected:
  RunOutcome run(int ranks, const std::function<void(int)>& body) {
    w.options.ranks = ranks;
    Decisions decisions(w.oracle, w.log);
    RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink, policy);
    return executor.run(body);
  }

  World w{1};
  Looking policy;
};

void yield_times(int times) {
  for (int k = 0; k < times; ++k) this_rank::yield();
}

TEST_F(Looks, EveryNthSwitch_IsALook) {
  w.options.switches_between_polls = 8;
  const auto outcome = run(4, [](int) { yield_times(30); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.switches, 124u);
  EXPECT_EQ(policy.polls, 15);
  EXPECT_EQ(policy.looks_as_a_rank, 0);
}

TEST_F(Looks, EverySwitch_IsALookWhereOneIsAskedFor) {
  w.options.switches_between_polls = 1;
  EXPECT_EQ(run(2, [](int) { yield_times(5); }).switches, 12u);
  EXPECT_EQ(policy.polls, 12);
}

TEST_F(Looks, None_WhereNoneAreAskedFor) {
  EXPECT_EQ(run(2, [](int) { yield_times(1'000); }).switches, 2'002u);
  EXPECT_EQ(policy.polls, 0);
}

TEST_F(Looks, StepBudget_EndsARunBetweenTwoLooks) {
  w.options.switches_between_polls = 8;
  w.options.steps_max = 20;
  const auto outcome = run(2, [](int) { yield_times(1'000); });
  EXPECT_EQ(outcome.ending, Ending::step_budget);
  EXPECT_EQ(outcome.stop_reason, "more than 20 switches");
  EXPECT_EQ(outcome.switches, 21u);
  EXPECT_EQ(policy.polls, 2);
}

TEST_F(Looks, StepBudgetAtALook_IsNotOneSwitchMore) {
  w.options.switches_between_polls = 7;
  w.options.steps_max = 21;
  const auto outcome = run(2, [](int) { yield_times(1'000); });
  EXPECT_EQ(outcome.ending, Ending::step_budget);
  EXPECT_EQ(outcome.switches, 22u);
  EXPECT_EQ(policy.polls, 3);
}

// Without looks between switches, a rank that yields forever would keep another rank from learning that its device is
// done.
TEST_F(Looks, WhatALookWakes_RunsBesideOneThatYields) {
  w.options.switches_between_polls = 16;
  policy.opens_at = 3;
  bool done = false;
  const auto outcome = run(2, [&](int rank) {
    if (rank == 1) {
      policy.queue.wait(FixedObserver("a device"));
      done = true;
    }
    while (!done) this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(done);
  EXPECT_EQ(policy.polls, 3);
}

// The rank's own suspension triggers the look that wakes it, before the rank has given up the thread.
TEST_F(Looks, RankThatIsWokenWhileItLeaves_GoesOn) {
  w.options.switches_between_polls = 1;
  policy.opens_at_once = true;
  int waits = 0;
  bool done = false;
  const auto outcome = run(2, [&](int rank) {
    if (rank == 1) {
      for (; waits < 100; ++waits) policy.queue.wait(FixedObserver("a device"));
      done = true;
    }
    while (!done) this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(waits, 100);
}

TEST_F(Looks, ManyRanksWokenWhileTheyLeave_AllGoOn) {
  w.options.switches_between_polls = 1;
  policy.opens_at_once = true;
  int waits = 0;
  const auto outcome = run(8, [&](int) {
    for (int k = 0; k < 100; ++k, ++waits) {
      policy.queue.wait(FixedObserver("a device"));
      this_rank::yield();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(waits, 800);
}

// A rank that yields joins the end of the queue, and the look puts the woken rank behind it. The interrupt must still
// find the rank that yields.
TEST_F(Looks, InterruptBehindALookThatWakes_EndsTheRun) {
  w.options.switches_between_polls = 16;
  policy.opens_at = 3;
  policy.interrupts_at = 3;
  int unwound = 0;
  const auto outcome = run(4, [&](int rank) {
    try {
      if (rank == 3) policy.queue.wait(FixedObserver("a device"));
      for (;;) this_rank::yield();
    } catch (const RankAborted&) {
      ++unwound;
    }
  });
  clear_interrupt();
  EXPECT_EQ(outcome.ending, Ending::interrupted);
  EXPECT_EQ(unwound, 4);
}

TEST_F(Looks, RanksErrno_StaysItsOwn) {
  w.options.switches_between_polls = 1;
  std::vector<int> seen;
  run(2, [&](int rank) {
    errno = ENOENT + rank;
    this_rank::yield();
    seen.push_back(errno - rank);
  });
  EXPECT_EQ(seen, std::vector({ENOENT, ENOENT}));
}

}  // namespace
}  // namespace rehearse::exec::test
