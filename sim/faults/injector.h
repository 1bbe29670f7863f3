// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/comm/call_gate.h>
#include <rehearse/comm/communicators.h>
#include <rehearse/exec/decision_log.h>
#include <rehearse/exec/executor.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>

#include "faulty_fabric.h"

namespace rehearse::sim {

// Looks at each call of a world, lets the faults that are planned for it take place, and keeps the ledger. What it is
// given outlives it; it outlives the communicators that have it as their gate.
class FaultInjector final : public comm::CallGate {
 public:
  FaultInjector(const std::vector<Fault>& faults, exec::RankExecutor& executor, FaultyFabric& fabric);
  ~FaultInjector() override;

  // Once, before the run: the world's groups.
  void begin(comm::Communicators& communicators);

  Answer admit(const comm::Operation& call, const comm::GroupIdentity& group, int rank,
               std::uint64_t sequence) override;

  // After the run.
  std::vector<FaultLine> ledger(const exec::RunOutcome& outcome) const;
  const std::map<int, std::string>& crashed() const noexcept { return crashed_; }

 private:
  // One call, and what is said of it.
  struct Moment {
    const comm::Operation& call;
    const comm::GroupIdentity& group;
    int rank;
    std::uint64_t sequence;
    std::string title() const;
  };
  struct Plan {
    const Fault* fault;
    FaultLine line;
    std::map<int, std::uint64_t> on_rank;  // how often it has fired there
    std::uint64_t drawn = 0;               // how often its probability was asked
  };
  class CrashTimer;

  bool is_due(Plan& plan, const Moment& moment);
  bool fits(const Plan& plan, const Moment& moment) const;
  bool fits(const std::optional<Fault::Point>& point, const Moment& moment, bool in_group) const;
  bool draw(Plan& plan);
  void note(Plan& plan, int rank, std::string call);
  Answer act(const Fault& fault, const Moment& moment);
  void crash(const Fault& fault, int rank, std::string call);
  void crash_now(Plan& plan, int rank);
  void refuse_broken(const Moment& moment) const;
  std::string why_not(const Plan& plan, const exec::RunOutcome& outcome) const;

  exec::RankExecutor& executor_;
  FaultyFabric& fabric_;
  comm::Communicators* communicators_ = nullptr;
  std::vector<Plan> plans_;
  std::vector<std::unique_ptr<CrashTimer>> timers_;
  std::map<std::pair<int, c10d::OpType>, std::uint64_t> calls_;  // by rank and kind
  std::map<int, std::uint64_t> all_calls_;                       // by rank
  std::map<int, std::string> crashed_;
  std::set<int> broken_;  // crashed ranks whose connections have broken
  exec::WaitQueue hung_;  // nobody notifies it
};

}  // namespace rehearse::sim
