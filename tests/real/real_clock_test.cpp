// SPDX-License-Identifier: BSD-3-Clause
// Contract: over the machine's time ranks sleep for as long as they say, read it on every clock of theirs, and are told
// of a standstill without waiting for a timeout. (How long things take at the most is up to the machine: not asserted.)
#include "runner/real_clock.h"

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include <rehearse/exec/executor.h>
#include <rehearse/exec/rank_state.h>
#include <rehearse/exec/this_rank.h>
#include <rehearse/exec/wait_queue.h>

#include "core/comm/test_world.h"
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

class RealTime : public ::testing::Test {
 protected:
  exec::RunOutcome run(int ranks, const std::function<void(int)>& body) {
    DecisionLog log;
    testing::NiceMock<comm::MockOracle> oracle;
    Decisions decisions(oracle, log);
    exec::NoRankState state;
    comm::EndWorld failures;
    NoDevices devices;
    DeviceIdlePolicy idle({.patience = milliseconds(20)});
    idle.watch(devices);
    exec::ExecutorOptions options;
    options.ranks = ranks;
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

TEST_F(RealTime, ClocksOfRanks_TellIt) {
  const auto outcome = run(2, [this](int) {
    const auto began = steady_clock::now();
    const auto at = clock.now();
    while (steady_clock::now() - began < milliseconds(3)) continue;
    EXPECT_GE(clock.now() - at, milliseconds(3));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(RealTime, WaitThatNobodyEnds_IsADeadlockBeforeItsTimeout) {
  exec::WaitQueue queue;
  struct Waits final : exec::Observer {
    std::string describe() const override { return "something"; }
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
