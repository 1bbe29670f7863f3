// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/job/fault_line.h>
#include <rehearse_internal/exec/executor.h>

#include "fault_plan.h"

namespace rehearse::sim {

// How many calls of each kind every rank made.
struct CallsMade {
  using OfRanks = std::map<int, std::uint64_t>;
  OfRanks calls, store_calls, writes;
};

// Explains a world's faults after a run: where each has fired, and why it has not fired where it should have. The
// constructor's arguments must outlive it.
class WhyNot {
 public:
  using Groups = std::vector<comm::EventLog::Group>;

  // `groups`: all groups of the run.
  WhyNot(const std::vector<FaultPlan>& plans, const CallsMade& made, int ranks, const exec::RunOutcome& outcome,
         const Groups& groups)
      : plans_(plans), made_(made), ranks_(ranks), outcome_(outcome), groups_(groups) {}

  // One line for each fault, in order.
  std::vector<FaultLine> lines() const;

 private:
  std::vector<int> missed(const FaultPlan& plan) const;
  std::string why_not(const FaultPlan& plan) const;
  std::string nearly(const FaultPlan& plan, int rank) const;
  bool has_fired(std::size_t number) const { return plans_[number - 1].line.times > 0; }
  std::string why_not_on(const std::vector<int>& ranks, const FaultPlan& plan) const;
  std::string describe(const std::vector<int>& ranks) const;

  const std::vector<FaultPlan>& plans_;
  const CallsMade& made_;
  const int ranks_;
  const exec::RunOutcome& outcome_;
  const Groups& groups_;
};

}  // namespace rehearse::sim
