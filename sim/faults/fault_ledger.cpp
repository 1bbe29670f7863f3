// SPDX-License-Identifier: BSD-3-Clause
#include "fault_ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/sim/fault_firings.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kFiringsKept = 8;

FiringObserver g_firing_observer = nullptr;

void tell_observer(std::size_t number, const FaultLine* line) {
  if (g_firing_observer != nullptr) g_firing_observer(number, line);
}

}  // namespace

void observe_firings(FiringObserver observer) noexcept { g_firing_observer = observer; }

class FaultLedger::InjectTimer final : public exec::Timer {
 public:
  // `holds`: the world must not end before the timer fires.
  InjectTimer(FaultLedger& ledger, std::size_t index, int rank, bool holds)
      : ledger_(ledger), index_(index), rank_(rank) {
    if (holds) hold_.emplace(ledger.executor_);
  }
  void fire() override {
    ledger_.inject_(ledger_.plans_[index_], rank_);
    hold_.reset();
  }
  // Most faults only break things, so their timers cannot end a hang. A timer that holds the world can.
  bool gives_up() const noexcept override { return !hold_ && !traits_of(ledger_.plans_[index_].fault->verb).mends; }
  Kind kind() const noexcept override { return Kind::fault; }

 private:
  FaultLedger& ledger_;
  const std::size_t index_;
  const int rank_;
  std::optional<exec::WorldHold> hold_;
};

FaultLedger::FaultLedger(const std::vector<Fault>& faults, exec::RankExecutor& executor) : executor_(executor) {
  for (const auto& fault : faults) {
    FaultPlan plan;
    plan.fault = &fault;
    plan.line.fault = rehearse::to_string(fault);
    plan.line.optional = fault.optional;
    plans_.push_back(std::move(plan));
  }
}

FaultLedger::~FaultLedger() {
  tell_observer(0, nullptr);
  for (const auto& timer : timers_) executor_.timers().cancel(*timer);
}

void FaultLedger::begin(Inject inject) {
  REHEARSE_CHECK(inject_ == nullptr && inject != nullptr, plans_.size());
  inject_ = std::move(inject);
  for (std::size_t index = 0; index < plans_.size(); ++index) {
    const Fault& fault = *plans_[index].fault;
    if (needs_no_call(fault) && !fault.on) arm(index, *due(fault, plans_));
  }
}

void FaultLedger::arm(std::size_t index, VirtualTime due) {
  REHEARSE_CHECK(index < plans_.size() && inject_ != nullptr, index, plans_.size());
  const auto& traits = traits_of(plans_[index].fault->verb);
  // Timers fire when time passes, which is after the first steps of all ranks. Only allocations may fail in these.
  const bool at_once = due == VirtualTime() && traits.of_memory;
  const auto on = [&](int rank) {
    if (at_once) return inject_(plans_[index], rank);
    if (traits.of_ended) {
      const auto after = due - executor_.clock().now();
      return exec::restart_rank(executor_, rank, after, [this, index, rank] { inject_(plans_[index], rank); });
    }
    // A timer for one rank does not hold the world: if all ranks have ended, the fault has no target.
    const bool holds = rank == kNoRank && leads_to_restart(index);
    timers_.push_back(std::make_unique<InjectTimer>(*this, index, rank, holds));
    executor_.timers().arm(*timers_.back(), due);
  };
  const Fault& fault = *plans_[index].fault;
  if (traits.of_world) return on(kNoRank);
  for (int rank = 0; rank < executor_.options().ranks; ++rank) {
    if (is_of(fault, rank)) on(rank);
  }
}

// True if a restart follows this fault, directly or through other faults that need no call. The recursion ends, because
// faults that form a ring of "on" are never armed.
bool FaultLedger::leads_to_restart(std::size_t index) const {
  for (std::size_t other = 0; other < plans_.size(); ++other) {
    const Fault& fault = *plans_[other].fault;
    if (fault.on != index + 1 || !needs_no_call(fault)) continue;
    if (traits_of(fault.verb).of_ended || leads_to_restart(other)) return true;
  }
  return false;
}

bool FaultLedger::may_begin_again(int rank) const {
  if (exec::is_to_begin_again(executor_, rank)) return true;
  return std::any_of(plans_.begin(), plans_.end(), [&](const FaultPlan& plan) {
    const Fault& fault = *plan.fault;
    return traits_of(fault.verb).of_ended && is_of(fault, rank) && fault.on && plans_[*fault.on - 1].line.times == 0;
  });
}

bool FaultLedger::is_open(const FaultPlan& plan, int rank) const {
  const Fault& fault = *plan.fault;
  if (traits_of(fault.verb).of_run || needs_no_call(fault) || !is_of(fault, rank)) return false;
  const auto target = plan.targets.find(rank);
  const auto fired = traits_of(fault.verb).of_world ? plan.line.times
                     : target == plan.targets.end() ? 0
                                                    : target->second.fired;
  if (fired >= fault.times) return false;
  const auto from = due(fault, plans_);
  return from && executor_.clock().now() >= *from;
}

bool FaultLedger::draw(FaultPlan& plan) {
  if (plan.fault->p == 1) return true;
  constexpr double kParts = 1e6;
  const auto yes = static_cast<std::uint32_t>(std::lround(plan.fault->p * kParts));
  constexpr std::array<std::uint32_t, 2> kNoOrYes{0, 1};
  const std::array<std::uint32_t, 2> weights{static_cast<std::uint32_t>(kParts) - yes, yes};
  ++plan.drawn;
  return executor_.decisions().choose(ChoiceKind::fault, kNoOrYes, weights) == 1;
}

void FaultLedger::note(FaultPlan& plan, int rank, std::string call) {
  REHEARSE_CHECK(&plan >= plans_.data() && &plan < plans_.data() + plans_.size(), rank, plans_.size());
  const auto now = executor_.clock().now();
  ++plan.line.times;
  ++plan.targets[rank].fired;
  if (plan.line.fired.size() < kFiringsKept) plan.line.fired.push_back({rank, std::move(call), now});
  const auto number = static_cast<std::size_t>(&plan - plans_.data()) + 1;
  tell_observer(number - 1, &plan.line);
  if (plan.line.times > 1) return;
  for (std::size_t other = 0; other < plans_.size(); ++other) {
    const Fault& fault = *plans_[other].fault;
    if (fault.on == number && needs_no_call(fault)) arm(other, *due(fault, plans_));
  }
}

}  // namespace rehearse::sim
