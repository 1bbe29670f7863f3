// SPDX-License-Identifier: BSD-3-Clause
#include "why_not.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {

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
    const auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
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

}  // namespace rehearse::sim
