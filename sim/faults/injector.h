// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/call_interceptor.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/executor.h>

#include "fault_ledger.h"
#include "faults/store/store_faults.h"
#include "faults/transfers/faulty_fabric.h"
#include "faults/transfers/partitions.h"
#include "memory/memory_meter.h"

namespace rehearse::sim {

// Sees each call of a world and applies the faults that are planned for it. The constructor's arguments must outlive
// it. It must outlive the communicators that have it as their interceptor.
class FaultInjector final : public comm::CallInterceptor {
 public:
  // `memory`: null if no fault needs it.
  FaultInjector(exec::RankExecutor& executor, FaultLedger& ledger, FaultyFabric& fabric, Partitions& partitions,
                StoreFaults& store, MemoryMeter* memory);

  // Call this once, before the run.
  void begin(comm::Communicators& communicators);

  Answer on_call(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence) override;

  // Applies a fault at a call outside of groups: `call` is a call of the store or a write.
  void act_outside_groups(FaultPlan& plan, int rank, const std::string& call);

  // Call this after the run. Returns by rank how each rank ended that crashed and did not start again.
  const std::map<int, std::string>& crashed() const noexcept { return crashed_; }

 private:
  struct InterceptedCall {
    comm::Operation& call;
    const comm::GroupIdentity& group;
    int rank;
    std::uint64_t sequence;
    std::string title() const;
  };
  // A rank that has crashed, or that has ended and started again.
  struct Loss {
    std::uint32_t groups = 0;  // groups with lower ids existed before; the restarted rank is in none of them
    bool connections_broke = false;
    bool is_down = true;
  };

  bool is_due(FaultPlan& plan, const InterceptedCall& intercepted);
  void look_at(const InterceptedCall& intercepted);
  void note_refused(const InterceptedCall& intercepted, const std::string& why);
  bool is_its_kind(const Fault& fault, const InterceptedCall& intercepted) const;
  bool fits(const FaultPlan& plan, const InterceptedCall& intercepted) const;
  bool fits(const std::optional<Fault::Point>& point, const InterceptedCall& intercepted, bool in_group) const;
  Answer act(FaultPlan& plan, const InterceptedCall& intercepted);
  void act_on_rank(FaultPlan& plan, int rank, const std::string& call);
  void inject(FaultPlan& plan, int rank);
  void fail_allocation(FaultPlan& plan, int rank, const std::string& since);
  void jump_clocks(const Fault& fault, int rank);
  void end_process(FaultPlan& plan, int rank, std::string how);
  void lose(int rank, bool connections_break);
  void begin_again(int rank);
  void refuse_lost(const InterceptedCall& intercepted);

  exec::RankExecutor& executor_;
  FaultLedger& ledger_;
  FaultyFabric& fabric_;
  Partitions& partitions_;
  StoreFaults& store_;
  MemoryMeter* const memory_;
  comm::Communicators* communicators_ = nullptr;
  std::map<std::pair<int, c10d::OpType>, std::uint64_t> calls_;  // by rank and kind
  std::map<int, std::uint64_t> all_calls_;                       // by rank
  std::map<int, std::string> crashed_;
  std::map<int, Loss> losses_;                          // by rank
  std::set<std::pair<const FaultPlan*, int>> to_come_;  // ranks whose next allocation fails; never iterated
};

}  // namespace rehearse::sim
