// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/idle_policy.h>
#include <rehearse_internal/exec/machine_time.h>

#include "core/exec/world_fixture.h"

// A world in the machine's time beside real threads. Waits have limits of hours, so a lost wake-up shows as a test that
// does not end.
namespace rehearse::exec::test {

class MachineClock final : public Clock {
 public:
  VirtualTime now() const noexcept override { return kTimeZero + (machine_time() - epochs_.monotonic); }
  Epochs epochs() const noexcept override { return epochs_; }
  bool passes_by_itself() const noexcept override { return true; }
  void advance_to(VirtualTime time) noexcept override { machine_sleep(time - now()); }

 private:
  const Epochs epochs_{.realtime = machine_wall_time(), .monotonic = machine_time()};
};

class WaitsForThreads final : public IdlePolicy {
 public:
  IdleStep next(const IdleFacts& facts) override {
    if (facts.due && facts.any_moves_on) return IdleStep::let_time_pass(*facts.due);
    if (facts.any_polls) return IdleStep::let_time_pass(facts.now + 10us);
    if (facts.any_waits_in_libc) return IdleStep::let_time_pass(facts.now + 1h);
    return IdleStep::end_run(Ending::deadlock, "nobody is on the way");
  }
  std::optional<IdleEnd> time_passed() override { return std::nullopt; }
};

struct MachineTimeWorld {
  explicit MachineTimeWorld(int ranks) : world(ranks) {}

  RunOutcome run(const std::function<void(RankExecutor&, int rank)>& body) {
    Decisions decisions(world.oracle, world.log);
    RankExecutor executor(world.options, decisions, clock, world.state, world.sink, idle);
    return executor.run([&](int rank) { body(executor, rank); });
  }

  World world;
  MachineClock clock;
  WaitsForThreads idle;
};

}  // namespace rehearse::exec::test
