// SPDX-License-Identifier: BSD-3-Clause
#include "standing_cuts.h"

#include <algorithm>

#include <fmt/format.h>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

std::string between(const Fault& fault, int ranks) {
  auto others = fault.from;
  for (int rank = 0; fault.from.empty() && rank < ranks; ++rank) {
    if (std::find(fault.ranks.begin(), fault.ranks.end(), rank) == fault.ranks.end()) others.push_back(rank);
  }
  const auto own = describe_ranks(fault.ranks), other = describe_ranks(others);
  if (fault.way == Fault::Way::both) return fmt::format("between {} and {}", own, other);
  const bool out = fault.way == Fault::Way::out;
  return fmt::format("from {} to {}", out ? own : other, out ? other : own);
}

// The last firing whose cut still stood at `end`; null: none did.
const FaultLine::Firing* standing(const FaultLine& line, const Fault& fault, VirtualTime healed, VirtualTime end) {
  const FaultLine::Firing* last = nullptr;
  for (const auto& firing : line.fired) {
    const bool over = fault.amount > VirtualDuration::zero() && fault.amount <= end - firing.at;
    if (!over && firing.at >= healed) last = &firing;
  }
  return last;
}

}  // namespace

std::string standing_cuts(const std::vector<FaultLine>& lines, int ranks, VirtualTime end) {
  std::vector<Fault> faults;
  for (const auto& line : lines) faults.push_back(parse_fault(line.fault));
  auto healed = kTimeZero;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (faults[i].verb != Fault::Verb::heal) continue;
    for (const auto& firing : lines[i].fired) healed = std::max(healed, firing.at);
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (faults[i].verb != Fault::Verb::partition) continue;
    if (const auto* const firing = standing(lines[i], faults[i], healed, end)) {
      text += fmt::format("the network is cut {} since {}; ", between(faults[i], ranks),
                          firing->at == kTimeZero ? "the start" : format_time(firing->at));
    }
  }
  return text;
}

}  // namespace rehearse::sim
