// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/exec/executor.h>

#include "fault_plan.h"

namespace rehearse::sim {

// How many calls of each kind every rank made.
struct CallsMade {
  using OfRanks = std::map<int, std::uint64_t>;
  OfRanks calls, store_calls, writes;
};

// The faults of a world: which may fire now, which have fired, and why the others have not. The constructor's arguments
// must outlive it.
class FaultLedger {
 public:
  static constexpr int kNoRank = -1;
  // Applies a fault that needs no call, at its time. `rank` is kNoRank for a fault without a rank. If the fault acts on
  // ended ranks (FaultTraits::of_ended), the ledger calls this only if the rank has ended by that time.
  using Inject = std::function<void(FaultPlan& plan, int rank)>;

  FaultLedger(const std::vector<Fault>& faults, exec::RankExecutor& executor);
  FaultLedger(const FaultLedger&) = delete;
  FaultLedger& operator=(const FaultLedger&) = delete;
  ~FaultLedger();

  // Call this once, before the run.
  void begin(Inject inject);

  std::vector<FaultPlan>& plans() noexcept { return plans_; }

  // True if ranks, times and other faults allow the fault to fire at a call of `rank` now.
  bool is_open(const FaultPlan& plan, int rank) const;

  // True if a planned fault may restart a rank that ends now.
  bool may_begin_again(int rank) const;

  // If the fault has a probability, asks the Oracle whether it fires; otherwise returns true.
  bool draw(FaultPlan& plan);

  void note(FaultPlan& plan, int rank, std::string call);

  // These counts explain why faults did not fire.
  void count_call(int rank) { ++made_.calls[rank]; }
  void count_store_call(int rank) { ++made_.store_calls[rank]; }
  void count_write(int rank) { ++made_.writes[rank]; }

  std::uint64_t hash() const { return hash_of(plans_); }

  // Call this after the run. `groups` holds all groups of the run.
  std::vector<FaultLine> lines(const exec::RunOutcome& outcome, const std::vector<comm::EventLog::Group>& groups) const;

 private:
  class InjectTimer;

  void arm(std::size_t index, VirtualTime due);
  bool leads_to_restart(std::size_t index) const;

  exec::RankExecutor& executor_;
  std::vector<FaultPlan> plans_;
  Inject inject_;
  std::vector<std::unique_ptr<InjectTimer>> timers_;
  CallsMade made_;
};

}  // namespace rehearse::sim
