// SPDX-License-Identifier: BSD-3-Clause
#include "swarm.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/job/parameter_text.h>

#include "faults/text/fault_fields.h"
#include "schedule/units.h"

namespace rehearse::sim {
namespace {

std::uint32_t below(std::size_t bound, Decisions& decisions) {
  std::vector<std::uint32_t> candidates(bound);
  std::iota(candidates.begin(), candidates.end(), 0u);
  return decisions.choose(ChoiceKind::fault, candidates);
}

enum class When { call, at, chance, time, first };

// The ways to set the moment of the fault, among which the swarm draws. Empty if the family states the moment, or needs
// no moment.
std::vector<When> open_whens(const Fault& family, const SwarmOptions& swarm) {
  const bool said = family.at || family.call || !family.group.empty() || !family.label.empty() || family.after ||
                    family.on || family.p != 1;
  if (said || traits_of(family.verb).of_run) return {};
  const auto& traits = traits_of(family.verb);
  std::vector<When> whens;
  if (traits.of_store) whens = {When::first, When::chance};
  if (traits.of_disk) whens = {When::call, When::chance};
  if (!traits.of_store && !traits.of_disk && !traits.of_ended) whens = {When::call, When::at, When::chance};
  if (swarm.within > VirtualDuration::zero()) whens.push_back(When::time);
  return whens;
}

void draw_when(Fault& fault, When when, const SwarmOptions& swarm, Decisions& decisions) {
  // Only a few probabilities, whose decimal texts are exact, because a fault is printed and parsed again.
  constexpr std::array kChances{0.5, 0.2, 0.1, 0.05, 0.02, 0.01};
  constexpr std::int64_t kTimes = 64;
  const auto call = [&] { return Fault::Point{"", 1 + std::uint64_t{below(swarm.calls, decisions)}}; };
  switch (when) {
    case When::call:
      fault.call = call();
      return;
    case When::at:
      fault.at = call();
      return;
    case When::chance:
      fault.p = kChances[below(kChances.size(), decisions)];
      return;
    case When::time: {
      const std::int64_t part = below(kTimes, decisions), all = swarm.within.count();
      fault.after = VirtualDuration(all / kTimes * part + all % kTimes * part / kTimes);
      return;
    }
    case When::first:
      return;
  }
}

Fault drawn(const Fault& family, const SwarmOptions& swarm, int ranks, Decisions& decisions) {
  Fault fault = family;
  fault.optional = true;
  const bool is_side = traits_of(family.verb).of_sides && !family.ranks.empty();
  if (!is_side) {
    const auto among = family.ranks.empty() ? ranks_below(ranks) : family.ranks;
    fault.ranks = {among[below(among.size(), decisions)]};
  }
  // A family may name a call of the store, or a write, without its number (`crash call=set`). Such a fault would always
  // fire at the first of these calls, so draw the number.
  const bool may_be_any = !traits_of(family.verb).of_store && callee_of(family) != Callee::group;
  for (auto* const point : {&fault.at, &fault.call}) {
    if (may_be_any && *point && (*point)->number == 0) (*point)->number = 1 + below(swarm.calls, decisions);
  }
  const auto whens = open_whens(family, swarm);
  if (!whens.empty()) draw_when(fault, whens[whens.size() == 1 ? 0 : below(whens.size(), decisions)], swarm, decisions);
  return fault;
}

}  // namespace

void require_valid(const SwarmOptions& swarm, int ranks) {
  if (swarm.faults_most < 1 || swarm.calls < 1) {
    throw FaultError(fmt::format("SwarmOptions has {} faults at most and {} calls; both are 1 or more",
                                 swarm.faults_most, swarm.calls));
  }
  constexpr VirtualDuration kWithinMost = std::chrono::hours(24 * 365 * 100);
  if (swarm.within < VirtualDuration::zero() || swarm.within > kWithinMost) {
    throw FaultError(fmt::format("the swarm's times are within {} ns; it takes 0 (none) to {} (100 years)",
                                 swarm.within.count(), units::print_duration(kWithinMost)));
  }
  if (swarm.on && swarm.families.empty()) {
    throw FaultError("the swarm is on and has no families to draw faults from, as in families = [\"crash\"]");
  }
  for (const auto& family : swarm.families) {
    require_family(family);
    Fault fault = family;
    if (fault.ranks.empty()) fault.ranks = {0};
    const auto whens = open_whens(fault, swarm);
    if (!whens.empty() && whens.back() == When::time)
      fault.after = swarm.within;
    else if (!whens.empty())
      fault.p = 0.5;
    if (fault.on)
      throw FaultError(
          fmt::format("family {} is on another fault: nobody knows its place", in_quotes(to_string(family))));
    require_valid(std::vector<Fault>{fault}, ranks);
  }
}

std::vector<Fault> draw_swarm(const SwarmOptions& swarm, int ranks, Decisions& decisions) {
  std::vector<Fault> faults;
  if (!swarm.on) return faults;
  for (const auto& family : swarm.families) {
    if (faults.size() == static_cast<std::size_t>(swarm.faults_most)) break;
    if (below(2, decisions) == 1) faults.push_back(drawn(family, swarm, ranks, decisions));
  }
  return faults;
}

}  // namespace rehearse::sim
