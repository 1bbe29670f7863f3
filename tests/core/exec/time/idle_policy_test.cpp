// SPDX-License-Identifier: BSD-3-Clause
// The decisions of virtual time at a standstill, without a fiber, a clock or an executor. One test lets an executor ask
// another policy.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/exec/world_fixture.h"
#include "exec/time/virtual_idle_policy.h"

namespace rehearse::exec::test {
namespace {

using Kind = IdleStep::Kind;

constexpr VirtualIdlePolicy::Limits kFew{.polls = 3, .timed_polls = 5, .give_ups = 2};

IdleFacts polls(std::optional<VirtualTime> due = std::nullopt, bool any_moves_on = false) {
  return {.now = kTimeZero, .due = due, .any_moves_on = any_moves_on, .any_polls = true};
}

IdleFacts waits(std::optional<VirtualTime> due = std::nullopt, bool any_moves_on = false) {
  return {.now = kTimeZero, .due = due, .any_moves_on = any_moves_on};
}

IdleFacts waits_in_kernel(std::optional<VirtualTime> due = std::nullopt) {
  return {.now = kTimeZero, .due = due, .any_in_kernel = true};
}

// Asks repeatedly with the same facts, and counts the answers of this kind until one of another kind comes.
int times(VirtualIdlePolicy& policy, Kind kind, const IdleFacts& facts) {
  int count = 0;
  while (policy.next(facts).kind == kind) ++count;
  return count;
}

TEST(VirtualIdle, NeitherPollsNorTimers_IsADeadlock) {
  VirtualIdlePolicy policy(kFew);
  const auto step = policy.next(waits());
  EXPECT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::deadlock);
  EXPECT_EQ(step.end.why, "no rank can go on and no timer is running");
  EXPECT_FALSE(step.hangs);
}

TEST(VirtualIdle, TimerThatMovesOn_IsJumpedTo) {
  VirtualIdlePolicy policy(kFew);
  const auto step = policy.next(waits(at(7ms), true));
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, at(7ms));
  EXPECT_FALSE(step.hangs);
  EXPECT_FALSE(step.moved);
}

// A rank that polls a limited number of times must give up before another rank's sleep ends.
TEST(VirtualIdle, Poller_ComesToATimerByItsLooks) {
  VirtualIdlePolicy policy(kFew);
  auto facts = polls(at(7ms), true);
  for (int poll = 1; poll <= 3; ++poll) {
    const auto step = policy.next(facts);
    EXPECT_EQ(step.kind, Kind::let_time_pass);
    EXPECT_EQ(step.to, at(1us * poll));
    EXPECT_TRUE(step.poll);
    facts.now = step.to;
  }
  const auto step = policy.next(facts);
  EXPECT_EQ(step.to, at(7ms));  // time jumps to the timer after three polls
  EXPECT_FALSE(step.poll);
  EXPECT_FALSE(step.hangs);
}

TEST(VirtualIdle, TimersWithoutEffect_LeaveTheTimesOfPollsAlone) {
  const auto times_of_polls = [](const std::vector<VirtualTime>& timers) {
    VirtualIdlePolicy policy({.poll_cost = 5us});
    auto facts = polls(std::nullopt, true);
    std::vector<VirtualTime> times;
    while (times.size() < 900) {
      facts.due.reset();
      for (const auto timer : timers) {
        if (!facts.due && timer > facts.now) facts.due = timer;
      }
      const auto step = policy.next(facts);
      facts.now = step.to;
      if (step.poll) times.push_back(step.to);
    }
    return times;
  };
  const auto alone = times_of_polls({});
  EXPECT_EQ(times_of_polls({at(1us), at(2us), at(5us), at(7us), at(1ms), at(3ms)}), alone);
  EXPECT_EQ(times_of_polls({at(1h)}), alone);
}

TEST(VirtualIdle, Polls_CostAPartOfTheTimeThatTheyHaveTaken) {
  VirtualIdlePolicy policy({.poll_cost = 5us, .polls = 500'000});
  auto facts = polls();
  int count = 0;
  const auto polls_until = [&](VirtualTime time) {
    while (facts.now < time) {
      facts.now = policy.next(facts).to;
      ++count;
    }
    return count;
  };
  EXPECT_EQ(polls_until(at(2'500us)), 500);
  EXPECT_LT(polls_until(at(1s)), 4'000);
  EXPECT_EQ(policy.next(facts).to - facts.now, VirtualDuration(1ms));  // the largest interval
  policy.note_progress();
  EXPECT_EQ(policy.next(facts).kind, Kind::poll_again);
  EXPECT_EQ(policy.next(facts).to - facts.now, VirtualDuration(5us));
}

TEST(VirtualIdle, OnlyTimersThatGiveUp_AreAHangBeforeTimePasses) {
  VirtualIdlePolicy policy(kFew);
  const auto step = policy.next(waits(at(30min)));
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, at(30min));
  EXPECT_TRUE(step.hangs);
}

TEST(VirtualIdle, PollerBesideATimerThatGivesUp_HangsAfterItsLooks) {
  VirtualIdlePolicy policy(kFew);
  for (int poll = 0; poll < 3; ++poll) {
    const auto step = policy.next(polls(at(1h)));
    EXPECT_EQ(step.to, at(1us));
    EXPECT_FALSE(step.hangs);
  }
  const auto step = policy.next(polls(at(1h)));
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, at(1h));
  EXPECT_TRUE(step.hangs);
  EXPECT_EQ(step.hung_since, kTimeZero);
}

// If a timeout comes before a polling loop has polled a thousand times, that is no hang, because the loop might soon
// give up. After a thousand polls, the loop counts as hung.
TEST(VirtualIdle, PollerThatATimeoutComesUpon_HangsIfItHasLookedOften) {
  for (const auto& [timeout, hangs] : {std::pair{at(900us), false}, std::pair{at(2ms), true}}) {
    VirtualIdlePolicy policy({.polls = 500'000});
    auto facts = polls(timeout);
    auto step = policy.next(facts);
    for (; step.to < timeout; step = policy.next(facts)) facts.now = step.to;
    EXPECT_EQ(step.to, timeout);
    EXPECT_EQ(step.hangs, hangs);
  }
}

TEST(VirtualIdle, LooksInVain_AreALivelockAfterTheirLimit) {
  for (const std::uint64_t limit : {0, 1, 1'000}) {
    VirtualIdlePolicy policy({.polls = limit});
    for (std::uint64_t poll = 0; poll < limit; ++poll) EXPECT_EQ(policy.next(polls()).kind, Kind::let_time_pass);
    const auto step = policy.next(polls());
    ASSERT_EQ(step.kind, Kind::end);
    EXPECT_EQ(step.end.ending, Ending::livelock);
    EXPECT_EQ(step.end.why,
              "stopped after " + std::to_string(limit) + " polls, because no rank is left to change their answer");
  }
}

TEST(VirtualIdle, Defaults_AreAThousandLooksTwoMillionTimedOnesAndTwentyThousandGiveUps) {
  constexpr VirtualIdlePolicy::Limits defaults;
  EXPECT_EQ(defaults.polls, ExecutorOptions().idle_polls_max);
  EXPECT_EQ(defaults.timed_polls, ExecutorOptions().idle_timed_polls_max);
  VirtualIdlePolicy polling(defaults);
  EXPECT_EQ(times(polling, Kind::let_time_pass, polls()), 1'000);
  VirtualIdlePolicy giving_up(defaults);
  EXPECT_EQ(times(giving_up, Kind::let_time_pass, waits(at(1s))), 20'000);
  VirtualIdlePolicy sleeping(defaults);
  int passed = 0;
  while (!sleeping.time_passed()) ++passed;
  EXPECT_EQ(passed, 2'000'000);
}

TEST(VirtualIdle, GiveUpsInARow_AreALivelockReportedWithItsHang) {
  VirtualIdlePolicy policy(kFew);
  EXPECT_EQ(times(policy, Kind::let_time_pass, waits(at(1s))), 2);
  const auto step = policy.next(waits(at(1s)));
  ASSERT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::livelock);
  EXPECT_EQ(step.end.why, "2 timeouts in a row while nothing else happened");
  EXPECT_TRUE(step.hangs);
}

TEST(VirtualIdle, TimeThatPassesWithoutProgress_IsALivelockAfterItsLimit) {
  VirtualIdlePolicy policy(kFew);
  for (int poll = 0; poll < 5; ++poll) EXPECT_FALSE(policy.time_passed());
  const auto end = policy.time_passed();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->ending, Ending::livelock);
  EXPECT_EQ(end->why, "6 clock reads or short sleeps while nothing else happened");
}

TEST(VirtualIdle, TimersThatLetSomebodyGoOn_AreNotCounted) {
  VirtualIdlePolicy policy(kFew);
  for (int poll = 0; poll < 5; ++poll) EXPECT_FALSE(policy.time_passed());
  policy.note_progress();
  EXPECT_FALSE(policy.time_passed());
  EXPECT_FALSE(policy.time_passed());
}

// The rank may wait for an hour of virtual time. A fixed interval would need too many polls, so the intervals grow, up
// to a second.
TEST(VirtualIdle, ClockReader_PollsAtLongerAndLongerIntervals) {
  VirtualIdlePolicy policy({});
  auto facts = polls();
  int count = 0;
  for (; facts.now < at(1h); ++count) {
    policy.note_clock_read();
    const auto step = policy.next(facts);
    ASSERT_EQ(step.kind, Kind::let_time_pass);
    EXPECT_LE(step.to - facts.now, VirtualDuration(1s));
    facts.now = step.to;
  }
  EXPECT_LT(count, 12'000);
}

TEST(VirtualIdle, ClockReader_IsNoHangBesideTimeouts) {
  VirtualIdlePolicy policy(kFew);
  auto facts = polls(at(1s));
  for (int poll = 0; poll < 100; ++poll) {
    policy.note_clock_read();
    const auto step = policy.next(facts);
    EXPECT_FALSE(step.hangs);  // the rank may go on by itself
    facts.now = step.to;
  }
}

TEST(VirtualIdle, Steps_AreLookedAtOnceBeforeTimePasses) {
  VirtualIdlePolicy policy(kFew);
  for (const auto& facts : {polls(at(1s), true), waits_in_kernel(at(1s))}) {
    policy.note_step();
    const auto step = policy.next(facts);
    EXPECT_EQ(step.kind, Kind::poll_again);
    EXPECT_FALSE(step.moved);
    EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
  }
}

TEST(VirtualIdle, StepsAlone_DoNotWakeWaitingFibers) {
  VirtualIdlePolicy policy(kFew);
  policy.note_step();
  EXPECT_EQ(policy.next(waits(at(1s))).kind, Kind::let_time_pass);
  policy.note_step();
  EXPECT_EQ(policy.next(waits()).end.ending, Ending::deadlock);
}

TEST(VirtualIdle, LooksInTheKernelInVain_AreADeadlockAtOnce) {
  VirtualIdlePolicy policy(kFew);
  policy.note_progress();
  EXPECT_EQ(policy.next(waits_in_kernel()).kind, Kind::poll_again);
  const auto step = policy.next(waits_in_kernel());
  ASSERT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::deadlock);
}

TEST(VirtualIdle, Progress_EndsAHangAndAllCounts) {
  for (const auto& facts : {polls(), waits_in_kernel()}) {
    VirtualIdlePolicy policy(kFew);
    for (int poll = 0; poll < 3; ++poll) policy.next(polls());
    for (int poll = 0; poll < 2; ++poll) policy.next(waits(at(1s)));
    for (int poll = 0; poll < 5; ++poll) EXPECT_FALSE(policy.time_passed());
    policy.note_progress();
    const auto step = policy.next(facts);
    EXPECT_EQ(step.kind, Kind::poll_again);
    EXPECT_TRUE(step.moved);
    EXPECT_FALSE(policy.next(polls()).moved);
    EXPECT_EQ(times(policy, Kind::let_time_pass, polls()), 2);  // the line above made the first of three polls
    EXPECT_EQ(times(policy, Kind::let_time_pass, waits(at(1s))), 2);
    for (int poll = 0; poll < 5; ++poll) EXPECT_FALSE(policy.time_passed());
    EXPECT_TRUE(policy.time_passed());
  }
}

// A timeout has woken a rank, and the rank waits again. This ends one hang and begins another.
TEST(VirtualIdle, ProgressOfWaiters_EndsAHangAndMayBeginOne) {
  VirtualIdlePolicy policy(kFew);
  policy.note_progress();
  const auto step = policy.next(waits(at(1s)));
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_TRUE(step.moved);
  EXPECT_TRUE(step.hangs);
}

// The hang caused the deadlock, so progress between hang and deadlock does not end the hang.
TEST(VirtualIdle, DeadlockAfterAGiveUp_KeepsTheHang) {
  VirtualIdlePolicy policy(kFew);
  EXPECT_TRUE(policy.next(waits(at(1s))).hangs);
  policy.note_progress();
  EXPECT_FALSE(policy.next(waits()).moved);
}

// Keeps the facts that it gets, lets time pass once, and then ends the run.
class EndsAtOnce final : public IdlePolicy {
 public:
  IdleStep next(const IdleFacts& facts) override {
    asked.push_back(facts);
    if (asked.size() == 1) return IdleStep::let_time_pass(at(5ms));
    return IdleStep::end_run(Ending::stopped, "the devices are gone");
  }
  std::optional<IdleEnd> time_passed() override { return std::nullopt; }

  bool stepped() const { return stepped_; }
  bool progress() const { return progress_; }

  std::vector<IdleFacts> asked;
};

TEST(IdlePolicy, OfAMode_DecidesInPlaceOfVirtualTimes) {
  World w(3);
  Decisions decisions(w.oracle, w.log);
  EndsAtOnce policy;
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink, policy);
  WaitQueue never;
  const auto outcome = executor.run([&](int rank) {
    if (rank == 0) this_rank::sleep_for(1h);
    if (rank == 1) never.wait(FixedObserver("the word of rank 0"), at(2h));
    while (rank == 2) this_rank::poll();
  });
  EXPECT_EQ(outcome.ending, Ending::stopped);
  EXPECT_EQ(outcome.stop_reason, "the devices are gone");
  EXPECT_EQ(outcome.end_time, at(5ms));
  ASSERT_EQ(policy.asked.size(), 2u);
  EXPECT_EQ(policy.asked[0].now, kTimeZero);
  EXPECT_EQ(policy.asked[1].now, at(5ms));
  for (const auto& facts : policy.asked) {
    EXPECT_EQ(facts.due, at(1h));
    EXPECT_TRUE(facts.any_moves_on);
    EXPECT_TRUE(facts.any_polls);
    EXPECT_FALSE(facts.any_in_kernel);
  }
  EXPECT_TRUE(policy.stepped());
  EXPECT_TRUE(policy.progress());  // the ranks have ended
}

}  // namespace
}  // namespace rehearse::exec::test
