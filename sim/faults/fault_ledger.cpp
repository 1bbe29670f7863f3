// SPDX-License-Identifier: BSD-3-Clause
#include "fault_ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/fault_firings.h>
#include <rehearse_internal/sim/format_time.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {
namespace {

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

std::vector<FaultLine> WhyNot::lines() const {
  std::vector<FaultLine> lines;
  for (const auto& plan : plans_) {
    lines.push_back(plan.line);
    const bool of_world = traits_of(plan.fault->verb).of_world;
    if (of_world && plan.line.times > 0) {
      lines.back().why_not.clear();
    } else if (!of_world || plan.line.why_not.empty()) {
      lines.back().why_not = why_not(plan);
    }
  }
  return lines;
}

// The target ranks on which the fault has not fired. For a fault that names no ranks, or has a probability: none if it
// has fired at all. If a fault that names no ranks never fired: the ranks that made a call of its kind, or all ranks if
// no rank did.
std::vector<int> WhyNot::missed(const FaultPlan& plan) const {
  const Fault& fault = *plan.fault;
  std::vector<int> ranks, callers;
  const bool any = plan.line.times > 0;
  if (any && (fault.p < 1 || fault.ranks.empty())) return ranks;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto target = plan.targets.find(rank);
    const bool is_known = target != plan.targets.end();
    if (!is_of(fault, rank) || (is_known && target->second.fired > 0)) continue;
    ranks.push_back(rank);
    if (is_known && target->second.nearly.calls() > 0) callers.push_back(rank);
  }
  return fault.ranks.empty() && !callers.empty() ? callers : ranks;
}

// For example "no call fitted; rank 3 made 4 calls". If the fault has fired on other ranks, or if ranks have different
// reasons, each reason begins with its ranks: "on ranks 1-2: no call fitted; ...".
std::string WhyNot::why_not(const FaultPlan& plan) const {
  constexpr std::size_t kReasonsShown = 3;
  std::vector<std::pair<std::string, std::vector<int>>> reasons;
  std::vector<int> others;
  for (const int rank : missed(plan)) {
    const auto reason = nearly(plan, rank);
    const auto known = std::ranges::find_if(reasons, [&](const auto& r) { return r.first == reason; });
    if (known != reasons.end()) {
      known->second.push_back(rank);
    } else if (reasons.size() < kReasonsShown) {
      reasons.push_back({reason, {rank}});
    } else {
      others.push_back(rank);
    }
  }
  if (!others.empty()) reasons.push_back({"", std::move(others)});
  const bool of_all = plan.line.times == 0 && reasons.size() == 1;
  std::string text;
  for (const auto& [reason, ranks] : reasons) {
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", of_all ? "" : fmt::format("on {}: ", describe_ranks(ranks)),
                        reason.empty() ? why_not_on(ranks, plan) : reason);
  }
  return text;
}

// What is known about this rank in particular; empty: nothing.
std::string WhyNot::nearly(const FaultPlan& plan, int rank) const {
  const Fault& fault = *plan.fault;
  const bool came_into_question = !fault.on || has_fired(*fault.on);
  if (!came_into_question || plan.drawn > 0) return "";
  const auto target = plan.targets.find(rank);
  return (target == plan.targets.end() ? NearMisses() : target->second.nearly).text(fault, rank, groups_);
}

// The reason for ranks about which nothing more is known.
std::string WhyNot::why_not_on(const std::vector<int>& ranks, const FaultPlan& plan) const {
  const Fault& fault = *plan.fault;
  if (fault.on && !has_fired(*fault.on)) return fmt::format("fault#{} did not fire", *fault.on);
  if (traits_of(fault.verb).of_memory && plan.drawn == 0) {
    return fmt::format("{} made no such allocation after it was due", describe(ranks));
  }
  if (traits_of(fault.verb).of_ended) {
    return outcome_.end_time < *due(fault, plans_) ? fmt::format("the run ended at {}", format_time(outcome_.end_time))
                                                   : "the rank was still running";
  }
  if (needs_no_call(fault)) {
    return fmt::format("the run ended at {}, or the rank before", format_time(outcome_.end_time));
  }
  if (plan.drawn > 0) {
    return fmt::format("drawn {} time{}, and never taken", plan.drawn, plan.drawn == 1 ? "" : "s");
  }
  const auto callee = callee_of(fault);
  const auto& made = callee == Callee::store ? made_.store_calls : callee == Callee::disk ? made_.writes : made_.calls;
  std::uint64_t calls = 0, of_kind = 0;
  for (const int rank : ranks) {
    const auto count = made.find(rank);
    calls += count == made.end() ? 0 : count->second;
    const auto target = plan.targets.find(rank);
    of_kind += target == plan.targets.end() ? 0 : target->second.nearly.calls();
  }
  const auto plural = calls == 1 ? "" : "s";
  if (callee == Callee::disk) {
    return fmt::format("no write fitted; {} made {} write{} in {} scratch folder{}", describe(ranks), calls, plural,
                       ranks.size() == 1 ? "its" : "their", ranks.size() == 1 ? "" : "s");
  }
  const bool of_store = callee == Callee::store;
  auto text = fmt::format("no call fitted; {} made {} call{}{}", describe(ranks), calls, plural,
                          of_store ? " of the store" : "");
  const auto& point = fault.at ? fault.at : fault.call;
  const bool of_some = !fault.group.empty() || !fault.label.empty();
  if (of_store || of_some || !point || point->op.empty() || calls == of_kind) return text;
  return fmt::format("{}, {} of kind {}", text, of_kind == 0 ? "none" : std::to_string(of_kind), point->op);
}

std::string WhyNot::describe(const std::vector<int>& ranks) const {
  const auto all = static_cast<std::size_t>(ranks_);
  return all > 1 && ranks.size() == all ? "all ranks" : describe_ranks(ranks);
}

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
  return std::ranges::any_of(plans_, [&](const FaultPlan& plan) {
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

std::vector<FaultLine> FaultLedger::lines(const exec::RunOutcome& outcome,
                                          const std::vector<comm::EventLog::Group>& groups) const {
  return WhyNot(plans_, made_, executor_.options().ranks, outcome, groups).lines();
}

}  // namespace rehearse::sim
