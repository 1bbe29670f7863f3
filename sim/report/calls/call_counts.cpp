// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/call_counts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <rehearse_internal/comm/operation.h>

#include "report/calls/call_places.h"

namespace rehearse::sim {
namespace {

using comm::Event;

struct CountedLine {
  std::uint32_t group = 0;
  Place where;
  std::map<int, std::uint64_t> times;  // by rank
};

class LineCounts {
 public:
  LineCounts(const comm::EventLog& log, const Places& places) : log_(log), places_(places) {}

  void add(const Event& event) {
    const auto [where, is_new_place] = places_known_.try_emplace(event.call_site);
    if (is_new_place) where->second = places_.place(log_.call_site(event));
    if (where->second.empty()) return;
    const auto [line, is_new] = known_.try_emplace({event.pg_id, where->second.text}, lines_.size());
    if (is_new) lines_.push_back({event.pg_id, where->second, {}});
    ++lines_[line->second].times[event.rank];
  }

  // `compared`: compare only these ranks; null: all ranks of the group.
  std::vector<CallCounts> unequal(const std::set<int>* compared) const {
    std::vector<CallCounts> found;
    for (const CountedLine& line : lines_) {
      std::map<std::uint64_t, std::vector<int>> ranks;
      for (const int rank : log_.groups()[line.group].ranks) {
        if (compared != nullptr && !compared->contains(rank)) continue;
        const auto times = line.times.find(rank);
        ranks[times != line.times.end() ? times->second : 0].push_back(rank);
      }
      // If no rank called twice from the line, some ranks simply left out the call. The report says that elsewhere.
      if (ranks.size() < 2 || ranks.rbegin()->first < 2) continue;
      CallCounts counts{log_.groups()[line.group].name, line.where, {}};
      for (auto& [times, of_side] : ranks) counts.sides.push_back({times, std::move(of_side)});
      std::stable_sort(counts.sides.begin(), counts.sides.end(),
                       [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
      found.push_back(std::move(counts));
    }
    return found;
  }

 private:
  const comm::EventLog& log_;
  const Places& places_;
  std::map<std::uint32_t, Place> places_known_;  // by Event::call_site
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> known_;
  std::vector<CountedLine> lines_;
};

}  // namespace

std::vector<CallCounts> lines_called_unequally(const RunRecord& record, Verdict verdict, const Places& places) {
  const auto& log = record.events;
  if (log.call_sites().size() < 2) return {};
  const auto groups = calls_up_to_the_failure(record, verdict);
  if (groups.empty() && verdict != Verdict::ok) return {};
  LineCounts counts(log, places);
  std::set<int> came;  // ranks that reached the failed call; all other ranks were still on their way
  for (const Event& event : log.kept()) {
    if (event.call_site == 0 || comm::is_point_to_point(log.signature(event).type)) continue;
    const auto group = groups.find(log.group(event).name);
    if (verdict != Verdict::ok && (group == groups.end() || event.seq_id > group->second)) continue;
    counts.add(event);
    if (group != groups.end() && event.seq_id == group->second) came.insert(event.rank);
  }
  return counts.unequal(came.empty() ? nullptr : &came);
}

}  // namespace rehearse::sim
