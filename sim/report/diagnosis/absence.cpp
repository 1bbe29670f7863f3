// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/absence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// Ranks with the same last call form one side. Sides are in order of their lowest rank.
std::vector<Difference::Side> sides_without(const std::vector<int>& ranks, const char* never, const RunRecord& record,
                                            const RankOutcomes& ends) {
  std::vector<Difference::Side> sides;
  for (const int rank : ranks) {
    const auto* const last = record.events.last(rank);
    const auto text = last == nullptr ? fmt::format("{}, and made no other call", never)
                                      : fmt::format("{}; called last: {}", never, record.events.title(*last));
    const auto where = last == nullptr ? Place() : ends.places().place(record.events.call_site(*last));
    const auto same = std::find_if(sides.begin(), sides.end(), [&](const Difference::Side& side) {
      return side.fingerprint == text && side.where == where;
    });
    if (same != sides.end()) {
      same->ranks.push_back(rank);
    } else {
      sides.push_back({{rank}, text, where});
    }
  }
  return sides;
}

void set_absent(Difference& difference, std::vector<Difference::Side> sides) {
  if (sides.empty()) return;
  difference.second = std::move(sides.front());
  difference.others.assign(std::make_move_iterator(std::next(sides.begin())), std::make_move_iterator(sides.end()));
}

}  // namespace

Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends) {
  Difference difference;  // has no group, because the group does not exist yet
  difference.first = {group.called_by, fmt::format("{} (\"{}\")", group.call, group.name),
                      ends.places().place(group.where)};
  set_absent(difference, sides_without(group.missing, "never called it", record, ends));
  return difference;
}

Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends) {
  Difference difference;
  difference.group = call.group;
  difference.sequence = call.sequence;
  difference.first = {{}, call.call, ends.place_of(call)};
  for (const auto& each : record.pending) {
    if (each.call == call.call && each.is_send == call.is_send && (!call.is_send || each.rank == call.rank))
      difference.first.ranks.push_back(each.rank);
  }
  std::sort(difference.first.ranks.begin(), difference.first.ranks.end());
  set_absent(difference,
             sides_without(call.waits_for, call.is_send ? "never received it" : "never called it", record, ends));
  return difference;
}

}  // namespace rehearse::sim
