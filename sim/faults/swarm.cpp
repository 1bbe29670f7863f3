// SPDX-License-Identifier: BSD-3-Clause
#include "swarm.h"

#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {
namespace {

std::uint32_t below(std::size_t bound, Decisions& decisions) {
  std::vector<std::uint32_t> candidates(bound);
  std::iota(candidates.begin(), candidates.end(), 0u);
  return decisions.choose(ChoiceKind::fault, candidates);
}

// Does the family leave it to the swarm when?
bool is_when_open(const Fault& family) {
  const bool said = family.at || family.call || !family.group.empty() || !family.label.empty() || family.after ||
                    family.on || family.p != 1;
  const auto& traits = traits_of(family.verb);
  return family.verb != Fault::Verb::slow && !traits.of_store && !traits.of_ended && !said;
}

Fault drawn(const Fault& family, const SwarmOptions& swarm, int ranks, Decisions& decisions) {
  Fault fault = family;
  fault.optional = true;
  const bool is_side = family.verb == Fault::Verb::partition && !family.ranks.empty();
  if (!is_side) {
    auto among = family.ranks;
    if (among.empty()) {
      among.resize(static_cast<std::size_t>(ranks));
      std::iota(among.begin(), among.end(), 0);
    }
    fault.ranks = {among[below(among.size(), decisions)]};
  }
  if (is_when_open(family)) fault.call = Fault::Point{"", 1 + std::uint64_t{below(swarm.calls, decisions)}};
  return fault;
}

}  // namespace

void require_valid(const SwarmOptions& swarm, int ranks) {
  if (swarm.faults_most < 1 || swarm.calls < 1) {
    throw FaultError(fmt::format("SwarmOptions has {} faults at most and {} calls; both are 1 or more",
                                 swarm.faults_most, swarm.calls));
  }
  if (swarm.on && swarm.families.empty()) {
    throw FaultError("the swarm is on and has no families to draw faults from, as in families = [\"crash\"]");
  }
  for (const auto& family : swarm.families) {
    require_family(family);
    Fault fault = family;
    if (fault.ranks.empty()) fault.ranks = {0};
    if (is_when_open(fault)) fault.call = Fault::Point{"", 1};
    if (fault.on)
      throw FaultError(fmt::format("family \"{}\" is on another fault: nobody knows its place", to_string(family)));
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
