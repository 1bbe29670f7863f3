// SPDX-License-Identifier: BSD-3-Clause
// Contract: in real time, ranks sleep for as long as they ask, and all their clocks show the machine's time. If no rank
// can go on, the run ends before a wait's own timeout. (Upper limits depend on the machine, so the tests do not assert
// them.)
#include "runner/real_clock.h"

#include <chrono>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/exec/machine_time.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/comm/test_world.h"
#include "core/exec/no_rank_state.h"
#include "runner/device_idle_policy.h"

namespace rehearse::real {
namespace {

using exec::Ending;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct NoDevices final : DeviceWork {
  bool poll() noexcept override { return false; }
  bool pending() const noexcept override { return false; }
};

// A device that is done after a number of looks.
struct OneDevice final : DeviceWork {
  bool poll() noexcept override {
    if (--looks_left != 0) return false;
    queue.notify_all();
    return true;
  }
  bool pending() const noexcept override { return looks_left > 0; }

  int looks_left = 100;
  exec::WaitQueue queue;
};

class RealTime : public ::testing::Test {
 protected:
  exec::RunOutcome run(int ranks, const std::function<void(int)>& body) {
    NoDevices none;
    return run(ranks, none, body);
  }

  exec::RunOutcome run(int ranks, DeviceWork& devices, const std::function<void(int)>& body) {
    DecisionLog log;
    testing::NiceMock<comm::MockOracle> oracle;
    Decisions decisions(oracle, log);
    exec::NoRankState state;
    comm::EndWorld failures;
    DeviceIdlePolicy idle({.stall_timeout = milliseconds(20)});
    idle.watch(devices);
    exec::ExecutorOptions options;
    options.ranks = ranks;
    options.switches_between_polls = 64;
    exec::RankExecutor executor(options, decisions, clock, state, failures, idle);
    return executor.run(body);
  }

  RealClock clock;
};

TEST_F(RealTime, Sleep_TakesAsLongAsItSays) {
  const auto began = steady_clock::now();
  const auto outcome = run(3, [](int rank) { exec::this_rank::sleep_for(milliseconds(5 * rank)); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_GE(steady_clock::now() - began, milliseconds(10));
  EXPECT_GE(outcome.ended_at[2] - VirtualTime{}, milliseconds(10));
}

TEST_F(RealTime, IsCalledSo) {
  EXPECT_EQ(exec::kind_of_time(clock), "real time");
  EXPECT_EQ(exec::kind_of_time(comm::ManualClock()), "virtual time");
}

TEST_F(RealTime, ClocksOfRanks_TellIt) {
  const auto outcome = run(2, [this](int) {
    const auto at = clock.now();
    const auto began = steady_clock::now();
    while (steady_clock::now() - began < milliseconds(3)) continue;
    EXPECT_GE(clock.now() - at, milliseconds(3));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(RealTime, ClocksOfRanks_AreTheMachinesOwn) {
  const auto wall_before = std::chrono::system_clock::now();
  const RealClock made_now;
  const auto wall_after = std::chrono::system_clock::now();
  EXPECT_GE(made_now.epochs().realtime, wall_before.time_since_epoch());
  EXPECT_LE(made_now.epochs().realtime, wall_after.time_since_epoch());
  const auto outcome = run(2, [this](int) {
    const auto before = exec::machine_time();
    const auto monotonic = steady_clock::now().time_since_epoch();
    const auto between = clock.now();
    const auto realtime = std::chrono::system_clock::now().time_since_epoch();
    const auto after = clock.now();
    EXPECT_GE(monotonic, before);
    EXPECT_LE(monotonic, exec::machine_time());
    EXPECT_GE(realtime, clock.epochs().realtime + between.time_since_epoch());
    EXPECT_LE(realtime, clock.epochs().realtime + after.time_since_epoch());
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(RealTime, ReadsOfTheClock_SwitchToNoOtherFiber) {
  int turns = 0;
  const auto outcome = run(2, [&](int) {
    const int before = ++turns;
    for (int k = 0; k < 1'000'000; ++k) static_cast<void>(steady_clock::now());
    EXPECT_EQ(turns, before);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.switches, 2u);
}

TEST_F(RealTime, RankThatYields_DoesNotHoldBackOneWhoseDeviceIsDone) {
  OneDevice device;
  bool done = false;
  const auto outcome = run(2, device, [&](int rank) {
    if (rank == 1) {
      device.queue.wait(exec::FixedObserver("its device"));
      done = true;
    }
    while (!done) exec::this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(done);
}

TEST_F(RealTime, LoopWithATimeLimit_IsNoLivelockBeforeIt) {
  bool given_up = false;
  const auto outcome = run(1, [&](int) {
    const auto end = steady_clock::now() + milliseconds(60);  // three times the stall timeout
    while (steady_clock::now() < end) exec::this_rank::poll();
    given_up = true;
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_TRUE(given_up);
}

TEST_F(RealTime, WaitThatNeverEnds_IsADeadlockBeforeItsTimeout) {
  exec::WaitQueue queue;
  struct Waits final : exec::Observer {
    exec::Wait describe() const override { return {"something"}; }
  } waits;
  const auto outcome = run(2, [&](int rank) {
    if (rank == 0) queue.wait(waits, clock.now() + std::chrono::hours(1));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  ASSERT_EQ(outcome.hang.size(), 1u);
  EXPECT_EQ(outcome.hang[0].rank, 0);
}

TEST_F(RealTime, LooksInVain_AreALivelock) {
  const auto outcome = run(2, [](int rank) {
    while (rank == 0) exec::this_rank::poll();
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
}

}  // namespace
}  // namespace rehearse::real
