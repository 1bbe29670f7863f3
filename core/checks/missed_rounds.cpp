// SPDX-License-Identifier: BSD-3-Clause
#include "checks/missed_rounds.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::checks {

void MissedRounds::add(const std::string& name, std::uint64_t number, Why why) {
  if (why.missing.empty()) return;
  auto& missed = missed_[{name, std::move(why)}];
  missed.first = missed.count == 0 ? number : std::min(missed.first, number);
  missed.last = std::max(missed.last, number);
  ++missed.count;
}

std::vector<std::string> MissedRounds::lines() const {
  std::vector<std::string> lines;
  for (const auto& [key, missed] : missed_) {
    const auto& [name, why] = key;
    const auto which = missed.count == 1 ? fmt::format("check #{} of \"{}\" was", missed.first, name)
                                         : fmt::format("{} checks of \"{}\", #{} to #{}, were", missed.count, name,
                                                       missed.first, missed.last);
    const auto who = describe_ranks(why.missing) +
                     (why.gave_up ? fmt::format(" had not come {} checks later", kRoundsOpenMost) : " did not come");
    lines.push_back(why.compared ? fmt::format("{} not complete: {}, the others were compared", which, who)
                                 : fmt::format("{} not made: {}", which, who));
  }
  return lines;
}

}  // namespace rehearse::checks
