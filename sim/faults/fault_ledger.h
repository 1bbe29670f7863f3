// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/exec/executor.h>

#include "near_misses.h"

namespace rehearse::sim {

// One fault of a world, and what has become of it.
struct FaultPlan {
  // Each rank is a target by itself.
  struct Target {
    std::uint64_t fired = 0;
    NearMisses nearly;
  };
  const Fault* fault = nullptr;
  FaultLine line;
  std::map<int, Target> targets;  // by rank
  std::uint64_t drawn = 0;        // how often its probability was asked
};

bool is_of(const Fault& fault, int rank);

// It happens at a time, or on another fault, whatever is called.
bool needs_no_call(const Fault& fault);

// The faults of a world: which of them may fire now, which have, and why the others did not. What it is given outlives
// it.
class FaultLedger {
 public:
  static constexpr int kNoRank = -1;
  using Groups = std::vector<comm::EventLog::Group>;
  // A fault that needs no call, at its time; on `rank`, or kNoRank where it is of none. What is of a rank that has
  // ended: only where it has by then.
  using Strike = std::function<void(FaultPlan& plan, int rank)>;

  FaultLedger(const std::vector<Fault>& faults, exec::RankExecutor& executor);
  FaultLedger(const FaultLedger&) = delete;
  FaultLedger& operator=(const FaultLedger&) = delete;
  ~FaultLedger();

  // Once, before the run.
  void begin(Strike strike);

  std::vector<FaultPlan>& plans() noexcept { return plans_; }

  // May it fire at a call of `rank` now, as far as ranks, times and other faults say?
  bool is_open(const FaultPlan& plan, int rank) const;

  // May a rank that ends now begin again, by a fault that is planned?
  bool may_begin_again(int rank) const;

  // Asks the Oracle whether it does, where that is a matter of chance.
  bool draw(FaultPlan& plan);

  void note(FaultPlan& plan, int rank, std::string call);

  // For what is said of faults that did not fire.
  void count_call(int rank) { ++calls_[rank]; }
  void count_store_call(int rank) { ++store_calls_[rank]; }
  void count_write(int rank) { ++writes_[rank]; }

  // For a run's identity: what each fault did, where and when; not what had brought it about. 0: none fired.
  std::uint64_t hash() const;

  // After the run, of which `groups` are all.
  std::vector<FaultLine> lines(const exec::RunOutcome& outcome, const Groups& groups) const;

 private:
  class StrikeTimer;
  using Calls = std::map<int, std::uint64_t>;  // by rank

  std::optional<VirtualTime> due(const Fault& fault) const;
  void arm(std::size_t place, VirtualTime due);
  bool leads_to_restart(std::size_t place) const;
  std::vector<int> missed(const FaultPlan& plan) const;
  std::string why_not(const FaultPlan& plan, const exec::RunOutcome& outcome, const Groups& groups) const;
  std::string nearly(const FaultPlan& plan, int rank, const Groups& groups) const;
  bool has_fired(std::size_t place) const { return plans_[place - 1].line.times > 0; }
  std::string why_not_on(const std::vector<int>& ranks, const FaultPlan& plan, const exec::RunOutcome& outcome) const;
  std::string describe(const std::vector<int>& ranks) const;

  exec::RankExecutor& executor_;
  std::vector<FaultPlan> plans_;
  Strike strike_;
  std::vector<std::unique_ptr<StrikeTimer>> timers_;
  Calls calls_, store_calls_, writes_;
};

}  // namespace rehearse::sim
