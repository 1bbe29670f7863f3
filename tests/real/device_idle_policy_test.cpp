// SPDX-License-Identifier: BSD-3-Clause
// Contract: in real time, being idle means waiting for devices. If only a timeout can end a wait, the policy reports
// the hang at once. If a rank waits in libc, the policy reports it after the stall timeout. Polling ranks go on more
// and more slowly, until the stall timeout.
#include "runner/device_idle_policy.h"

#include <gmock/gmock.h>

namespace rehearse::real {
namespace {

using exec::Ending;
using exec::IdleFacts;
using exec::IdleStep;
using Kind = IdleStep::Kind;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Devices final : DeviceWork {
  bool poll() noexcept override {
    ++polls;
    return std::exchange(body, false);
  }
  bool pending() const noexcept override { return busy; }
  int polls = 0;
  bool body = false;
  bool busy = false;
};

class DeviceIdle : public ::testing::Test {
 protected:
  DeviceIdle() { policy.watch(devices); }

  IdleFacts facts{.now = VirtualTime{} + seconds(5), .due = {}};
  Devices devices;
  DeviceIdlePolicy policy{{.stall_timeout = milliseconds(10)}};
};

TEST_F(DeviceIdle, CompletedDeviceWork_LetsRanksGoOn) {
  devices.body = true;
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::poll_again);
  EXPECT_TRUE(step.moved);
  EXPECT_FALSE(step.hangs);
}

TEST_F(DeviceIdle, LookWhileRanksRun_PollsDevicesAndCountsTheirProgress) {
  facts.any_polls = true;
  policy.poll();
  EXPECT_EQ(devices.polls, 1);
  EXPECT_FALSE(policy.next(facts).moved);
  devices.body = true;
  policy.poll();
  EXPECT_EQ(devices.polls, 3);
  EXPECT_TRUE(policy.next(facts).moved);
}

TEST_F(DeviceIdle, BusyDevices_ArePolledAgainAndAreNoHang) {
  devices.busy = true;
  facts.due = facts.now + seconds(1'800);
  for (int poll = 0; poll < 100'000; ++poll) {
    const auto step = policy.next(facts);
    ASSERT_EQ(step.kind, Kind::poll_again);
    ASSERT_FALSE(step.hangs);
  }
}

TEST_F(DeviceIdle, TimerThatIsDue_FiresWhileDevicesAreBusy) {
  devices.busy = true;
  facts.due = facts.now;
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, facts.now);
}

TEST_F(DeviceIdle, OnlyTimeoutsLeft_IsADeadlockAtOnce) {
  facts.due = facts.now + seconds(1'800);
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::deadlock);
  EXPECT_EQ(step.end.why, "no rank can go on, no device is at work, and only timeouts are left");
  EXPECT_TRUE(step.hangs);
}

TEST_F(DeviceIdle, NoTimer_IsADeadlock) {
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::deadlock);
  EXPECT_FALSE(step.hangs);
}

TEST_F(DeviceIdle, Sleepers_AreWaitedFor) {
  facts.due = facts.now + milliseconds(3);
  facts.any_moves_on = true;
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, facts.now + milliseconds(3));
}

TEST_F(DeviceIdle, Pollers_LookAtLongerAndLongerIntervals) {
  facts.any_polls = true;
  policy.note_clock_read();
  std::vector<std::int64_t> naps;
  for (int poll = 0; poll < 13; ++poll) {
    const auto step = policy.next(facts);
    ASSERT_EQ(step.kind, Kind::let_time_pass);
    naps.push_back((step.to - facts.now) / microseconds(1));
  }
  EXPECT_THAT(naps, testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000));
  policy.note_progress();
  EXPECT_EQ(policy.next(facts).kind, Kind::poll_again);
  EXPECT_EQ(policy.next(facts).to, facts.now + microseconds(1));
}

TEST_F(DeviceIdle, Nap_EndsWithTheNextTimer) {
  facts.any_polls = true;
  facts.due = facts.now + std::chrono::nanoseconds(300);
  EXPECT_EQ(policy.next(facts).to, *facts.due);
}

TEST_F(DeviceIdle, PollsInVain_AreALivelockAfterTheStallTimeout) {
  facts.any_polls = true;
  EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
  facts.now += milliseconds(10);
  EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
  facts.now += milliseconds(1);
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::end);
  EXPECT_EQ(step.end.ending, Ending::livelock);
  EXPECT_EQ(step.end.why, "for 11 ms ranks have only polled, and no rank is left to change the answer");
}

TEST_F(DeviceIdle, LooksAtTheClock_AreNoLivelock) {
  facts.any_polls = true;
  for (int poll = 0; poll < 100; ++poll) {
    policy.note_clock_read();
    EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
    facts.now += milliseconds(1);
  }
}

TEST_F(DeviceIdle, Progress_RestartsTheStallTimeout) {
  facts.any_polls = true;
  EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
  facts.now += milliseconds(9);
  policy.note_progress();
  EXPECT_EQ(policy.next(facts).kind, Kind::poll_again);
  facts.now += milliseconds(9);
  EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
  facts.now += milliseconds(9);
  EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
}

TEST_F(DeviceIdle, RanksInTheKernel_LookAgainAfterAnyStep) {
  facts.any_in_kernel = true;
  policy.note_step();
  EXPECT_EQ(policy.next(facts).kind, Kind::poll_again);
  EXPECT_EQ(policy.next(facts).kind, Kind::end);
}

TEST_F(DeviceIdle, WaitInLibc_IsADeadlockAfterTheStallTimeout) {
  facts.any_waits_in_libc = true;
  const auto step = policy.next(facts);
  EXPECT_EQ(step.kind, Kind::let_time_pass);
  EXPECT_EQ(step.to, facts.now + milliseconds(10));
  EXPECT_FALSE(step.hangs);
  facts.now += milliseconds(10);
  facts.due = facts.now + milliseconds(2);
  EXPECT_EQ(policy.next(facts).to, facts.due);
  facts.now += milliseconds(1);
  EXPECT_EQ(policy.next(facts).end.ending, Ending::deadlock);
}

TEST_F(DeviceIdle, AnyStep_RestartsTheWaitInLibc) {
  facts.any_waits_in_libc = true;
  for (int poll = 0; poll < 100; ++poll) {
    EXPECT_EQ(policy.next(facts).kind, Kind::let_time_pass);
    facts.now += milliseconds(11);
    policy.note_step();
  }
}

}  // namespace
}  // namespace rehearse::real
