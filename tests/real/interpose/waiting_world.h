// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/world_local.h>

#include "core/exec/no_rank_state.h"
#include "interpose/device_waits.h"
#include "runner/arrival_oracle.h"
#include "runner/device_idle_policy.h"
#include "runner/real_clock.h"

namespace rehearse::real {

// The ranks of a real run that does nothing but wait for devices.
class WaitingWorld {
 public:
  exec::RunOutcome run(int ranks, const std::function<void(int rank)>& body) {
    ArrivalOracle oracle;
    DecisionLog log;
    Decisions decisions(oracle, log);
    RealClock clock;
    exec::NoRankState state;
    EndOnFirst failures;
    DeviceIdlePolicy idle({});
    idle.watch(waits);
    exec::ExecutorOptions options;
    options.ranks = ranks;
    exec::RankExecutor executor(options, decisions, clock, state, failures, idle);
    const exec::WorldLocal<DeviceWaits>::Lent lent(waits);
    return executor.run(body);
  }

  struct NoWork final : DeviceWork {
    bool poll() noexcept override {
      ++polls;
      return false;
    }
    bool pending() const noexcept override { return busy; }
    int polls = 0;
    bool busy = false;
  } others;
  DeviceWaits waits{others};

 private:
  struct EndOnFirst final : exec::FailureSink {
    Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
  };
};

}  // namespace rehearse::real
