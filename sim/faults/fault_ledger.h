// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/exec/executor.h>

#include "fault_plan.h"
#include "why_not.h"

namespace rehearse::sim {

// The faults of a world: which of them may fire now, which have, and why the others did not. What it is given outlives
// it.
class FaultLedger {
 public:
  static constexpr int kNoRank = -1;
  // A fault that needs no call, at its time; on `rank`, or kNoRank where it is of none. What is of a rank that has
  // ended: only where it has by then.
  using Inject = std::function<void(FaultPlan& plan, int rank)>;

  FaultLedger(const std::vector<Fault>& faults, exec::RankExecutor& executor);
  FaultLedger(const FaultLedger&) = delete;
  FaultLedger& operator=(const FaultLedger&) = delete;
  ~FaultLedger();

  // Once, before the run.
  void begin(Inject inject);

  std::vector<FaultPlan>& plans() noexcept { return plans_; }

  // May it fire at a call of `rank` now, as far as ranks, times and other faults say?
  bool is_open(const FaultPlan& plan, int rank) const;

  // May a rank that ends now begin again, by a fault that is planned?
  bool may_begin_again(int rank) const;

  // Asks the Oracle whether it does, where that is a matter of chance.
  bool draw(FaultPlan& plan);

  void note(FaultPlan& plan, int rank, std::string call);

  // For what is said of faults that did not fire.
  void count_call(int rank) { ++made_.calls[rank]; }
  void count_store_call(int rank) { ++made_.store_calls[rank]; }
  void count_write(int rank) { ++made_.writes[rank]; }

  // See hash_of().
  std::uint64_t hash() const { return hash_of(plans_); }

  // After the run, of which `groups` are all.
  std::vector<FaultLine> lines(const exec::RunOutcome& outcome, const WhyNot::Groups& groups) const {
    return WhyNot(plans_, made_, executor_.options().ranks, outcome, groups).lines();
  }

 private:
  class InjectTimer;

  void arm(std::size_t place, VirtualTime due);
  bool leads_to_restart(std::size_t place) const;

  exec::RankExecutor& executor_;
  std::vector<FaultPlan> plans_;
  Inject inject_;
  std::vector<std::unique_ptr<InjectTimer>> timers_;
  CallsMade made_;
};

}  // namespace rehearse::sim
