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
    if (found_.size() == kKindsKept || std::all_of(call.begin(), call.end(), same_site)) return;
    std::sort(call.begin(), call.end(), [](const Event* a, const Event* b) { return a->rank < b->rank; });
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
    if (std::any_of(all.begin(), all.end(), [](const Lines* lines) { return lines->empty(); })) return {};
    std::size_t depth = 0;
    const auto goes_on_alike = [&](const Lines* lines) {
      return depth < lines->size() && depth < all[0]->size() && (*lines)[depth] == (*all[0])[depth];
    };
    while (std::all_of(all.begin(), all.end(), goes_on_alike)) ++depth;
    if (is_listed_elsewhere(call, depth)) return {};
    std::vector<CallPlaces::Side> sides;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& lines = *all[i];
      const auto differs = std::min(depth, lines.size() - 1);
      Place where = lines[0];
      if (differs > 0) where.text += ", from " + lines[differs].text;
      auto side = std::find_if(sides.begin(), sides.end(), [&](const auto& known) { return known.where == where; });
      if (side == sides.end()) side = sides.insert(side, {{}, std::move(where)});
      side->ranks.push_back(call[i]->rank);
    }
    std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
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
