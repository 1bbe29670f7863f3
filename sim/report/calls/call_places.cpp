// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/call_places.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <rehearse_internal/comm/operation.h>

#include "report/ranks/rank_failure_text.h"

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
      std::ranges::stable_sort(counts.sides,
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

namespace {

constexpr std::size_t kKindsKept = 3;

using comm::Event;
using Call = std::vector<const Event*>;                   // one collective, by rank
using Lines = Places::Lines;                              // empty: unknown
using Kind = std::vector<std::pair<int, std::uint32_t>>;  // which rank called from where

// In the order of each call's first event.
std::vector<Call> calls_of(const comm::EventLog& log, const std::vector<Event>& events, const CallsUpTo& groups) {
  std::vector<Call> calls;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;  // by group and sequence number
  for (const Event& event : events) {
    if (event.call_site == 0) continue;
    const auto group = groups.find(log.group(event).name);
    if (group == groups.end() || event.seq_id > group->second) continue;
    if (comm::is_point_to_point(log.signature(event).type)) continue;
    const auto [entry, is_new] = known.try_emplace({event.pg_id, event.seq_id}, calls.size());
    if (is_new) calls.emplace_back();
    calls[entry->second].push_back(&event);
  }
  return calls;
}

class DifferentPlaces {
 public:
  DifferentPlaces(const comm::EventLog& log, const Places& places, const CallsUpTo& groups)
      : log_(log), places_(places), groups_(groups) {}

  void look_at(Call call) {
    const auto same_site = [&call](const Event* event) { return event->call_site == call.front()->call_site; };
    if (found_.size() == kKindsKept || std::ranges::all_of(call, same_site)) return;
    std::ranges::sort(call, [](const Event* a, const Event* b) { return a->rank < b->rank; });
    Kind kind;
    for (const Event* event : call) kind.emplace_back(event->rank, event->call_site);
    if (!seen_.insert(std::move(kind)).second) return;
    auto sides = sides_of(call);
    if (sides.size() > 1) found_.push_back({log_.group(*call.front()).name, call.front()->seq_id, std::move(sides)});
  }

  std::vector<CallPlaces> take() { return std::move(found_); }

 private:
  // The report already contains the failed call with its places.
  bool is_listed_elsewhere(const Call& call, std::size_t common) const {
    return common == 0 && call.front()->seq_id == groups_.at(log_.group(*call.front()).name);
  }

  // If all ranks called through one helper, its line says little. So follow the stacks outwards, and also name the
  // first lines that differ.
  std::vector<CallPlaces::Side> sides_of(const Call& call) {
    std::vector<const Lines*> all;
    for (const Event* event : call) all.push_back(&places_.lines(log_.call_site(*event)));
    if (std::ranges::any_of(all, [](const Lines* lines) { return lines->empty(); })) return {};
    std::size_t depth = 0;
    const auto goes_on_alike = [&](const Lines* lines) {
      return depth < lines->size() && depth < all[0]->size() && (*lines)[depth] == (*all[0])[depth];
    };
    while (std::ranges::all_of(all, goes_on_alike)) ++depth;
    if (is_listed_elsewhere(call, depth)) return {};
    std::vector<CallPlaces::Side> sides;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& lines = *all[i];
      const auto differs = std::min(depth, lines.size() - 1);
      Place where = lines[0];
      if (differs > 0) where.text += ", from " + lines[differs].text;
      auto side = std::ranges::find_if(sides, [&](const auto& known) { return known.where == where; });
      if (side == sides.end()) side = sides.insert(side, {{}, std::move(where)});
      side->ranks.push_back(call[i]->rank);
    }
    std::ranges::sort(sides, [](const auto& a, const auto& b) {
      return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks < b.ranks;
    });
    return sides;
  }

  const comm::EventLog& log_;
  const Places& places_;
  const CallsUpTo& groups_;
  std::set<Kind> seen_;
  std::vector<CallPlaces> found_;
};

}  // namespace

CallsUpTo calls_up_to_the_failure(const RunRecord& record, Verdict verdict) {
  CallsUpTo calls;
  if (!record.mismatches.empty()) {
    const auto& mismatch = record.mismatches.front();
    if (mismatch.kind == comm::Mismatch::Kind::collective) calls[mismatch.group] = mismatch.sequence;
    return calls;
  }
  const auto& failures = record.outcome.failures;
  const bool of_calls = verdict == Verdict::mismatch || is_of_waits(verdict);
  if (!of_calls && (failures.empty() || !follows_a_timeout(failures.front()))) return calls;
  for (const auto& call : record.pending) {
    if (!call.waits_for.empty()) calls[call.group] = std::numeric_limits<std::uint64_t>::max();
  }
  return calls;
}

std::vector<CallPlaces> calls_from_different_places(const RunRecord& record, Verdict verdict, const Places& places) {
  const auto groups = calls_up_to_the_failure(record, verdict);
  if (groups.empty()) return {};
  const auto events = record.events.kept();
  DifferentPlaces different(record.events, places, groups);
  for (auto& call : calls_of(record.events, events, groups)) different.look_at(std::move(call));
  return different.take();
}

}  // namespace rehearse::sim
