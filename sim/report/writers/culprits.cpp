// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/culprits.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace rehearse::sim {
namespace {

constexpr std::string_view kGroup = " on group \"";  // in the text of each call on a group

std::vector<int> ranks_of(const Report& report, Cause::Kind kind) {
  const auto& all = report.causes;
  const auto cause = std::find_if(all.begin(), all.end(), [kind](const Cause& each) { return each.kind == kind; });
  return cause == all.end() ? std::vector<int>() : cause->ranks;
}

// The ranks that compile while others do not, if the trouble began with that.
std::vector<int> ranks_that_compile(const Report& report) {
  const auto first = std::find_if(report.causes.begin(), report.causes.end(),
                                  [](const Cause& cause) { return cause.kind != Cause::Kind::cut; });
  return first != report.causes.end() && first->kind == Cause::Kind::compiles ? first->ranks : std::vector<int>();
}

// The call in the text, without the details that a wait or an error adds after it.
std::string call_in(const std::string& doing) {
  if (const auto group = doing.find(kGroup); group != std::string::npos) {
    const auto end = doing.find('"', group + kGroup.size());
    if (end != std::string::npos) return doing.substr(0, end + 1);
  }
  return doing.substr(0, std::min(doing.find(": "), doing.find(" (")));
}

std::vector<int> sorted(const std::set<int>& ranks) { return {ranks.begin(), ranks.end()}; }

std::vector<int> of_difference(const Difference& difference) {
  std::set<int> minority(difference.second.ranks.begin(), difference.second.ranks.end());
  for (const auto& side : difference.others) minority.insert(side.ranks.begin(), side.ranks.end());
  if (difference.first.ranks.size() <= minority.size())
    minority.insert(difference.first.ranks.begin(), difference.first.ranks.end());
  return sorted(minority);
}

// The ranks that failed on their own; if there are none, the ranks to which others lost their connections; if there are
// none of these either, all ranks that failed.
std::vector<int> of_failures(const Report& report) {
  std::set<int> failed, of_their_own, left;
  for (const auto& line : report.rank_lines) {
    if (line.state != RankOutcome::failed) continue;
    failed.insert(line.rank);
    if (!failed_by_others(line)) of_their_own.insert(line.rank);
    left.insert(line.lost.begin(), line.lost.end());
  }
  if (!of_their_own.empty()) return sorted(of_their_own);
  return sorted(left.empty() ? failed : left);
}

// The rank whose own call on a group timed out although nobody was missing.
std::vector<int> of_slow_transfer(const Report& report) {
  if (report.causes.size() != 1 || report.causes.front().kind != Cause::Kind::failed) return {};
  const auto& cause = report.causes.front();
  return cause.call.find(kGroup) == std::string::npos ? std::vector<int>() : cause.ranks;
}

std::vector<int> of_check(const Report& report) {
  auto failed = of_failures(report);
  return failed.empty() ? ranks_of(report, Cause::Kind::found_at_fault) : failed;
}

// The culprits among ranks that wait for each other in a ring, by the rule of culprits_of().
std::set<int> odd_ones_of(const std::set<int>& ring, const std::vector<AwaitedRanks>& waits) {
  std::map<std::string, std::set<int>> by_call;
  for (const auto& wait : waits) {
    if (ring.contains(wait.rank)) by_call[wait.call].insert(wait.rank);
  }
  auto odd = ring;
  for (const auto& [call, ranks] : by_call) {
    if (2 * ranks.size() <= ring.size() || ranks.size() == ring.size()) continue;
    for (const int rank : ranks) odd.erase(rank);
  }
  return odd;
}

// The ranks of the ring whose sends and receives went past each other, those named most often. Empty: there are none.
std::set<int> ends_of_stray_sends(const std::set<int>& ring, const std::vector<Cause>& causes) {
  std::map<int, int> times;
  for (const auto& cause : causes) {
    if (cause.kind != Cause::Kind::unmatched || cause.waiting.empty()) continue;
    for (const auto* const side : {&cause.ranks, &cause.waiting}) {
      for (const int rank : *side) times[rank] += ring.contains(rank) ? 1 : 0;
    }
  }
  int most = 1;
  for (const auto& [rank, count] : times) most = std::max(most, count);
  std::set<int> ranks;
  for (const auto& [rank, count] : times) {
    if (count == most) ranks.insert(rank);
  }
  return ranks;
}

// Leaves out the ranks that wait for a ring and are in none: one after the other, those for which no rank is left that
// waits.
std::set<int> in_rings(const std::map<int, std::set<int>>& edges) {
  std::map<int, std::size_t> waiting;  // for each rank: how many ranks wait for it
  for (const auto& [rank, awaited] : edges) {
    waiting.try_emplace(rank);
    for (const int other : awaited) ++waiting[other];
  }
  std::vector<int> unawaited;
  for (const auto& [rank, count] : waiting) {
    if (count == 0) unawaited.push_back(rank);
  }
  while (!unawaited.empty()) {
    const int rank = unawaited.back();
    unawaited.pop_back();
    waiting.erase(rank);
    const auto own = edges.find(rank);
    if (own == edges.end()) continue;
    for (const int other : own->second) {
      if (--waiting[other] == 0) unawaited.push_back(other);
    }
  }
  std::set<int> ranks;
  for (const auto& [rank, count] : waiting) ranks.insert(rank);
  return ranks;
}

std::vector<int> of_waits(const Report& report) {
  const auto waits = waits_of(report.rank_lines);
  std::map<int, std::set<int>> edges;
  for (const auto& wait : waits) edges[wait.rank].insert(wait.waits_for.begin(), wait.waits_for.end());
  for (const int late : late_ranks(waits)) edges.erase(late);
  std::set<int> ends;
  for (const auto& [rank, awaited] : edges) {
    for (const int other : awaited) {
      if (!edges.contains(other)) ends.insert(other);
    }
  }
  if (!ends.empty()) return sorted(ends);
  const auto ring = in_rings(edges);
  const auto stray = ends_of_stray_sends(ring, report.causes);
  return sorted(stray.empty() ? odd_ones_of(ring, waits) : stray);
}

// If some ranks compile and the other culprits have gone on, returns the smaller of these two sides. If the sides are
// equally large, returns the ranks that compile.
std::vector<int> of_standstill(const Report& report) {
  const auto& causes = report.causes;
  const auto ended =
      std::find_if(causes.begin(), causes.end(), [](const Cause& cause) { return cause.kind == Cause::Kind::ended; });
  // The smaller side, as in the headline: one call too many, or in the wrong group.
  if (ended != causes.end() && ended->waiting.size() < ended->ranks.size()) return ended->waiting;
  auto waits = of_waits(report);
  auto compiling = ranks_that_compile(report);
  if (compiling.empty()) return waits;
  std::erase_if(waits, [&](int rank) { return std::binary_search(compiling.begin(), compiling.end(), rank); });
  return waits.empty() || compiling.size() <= waits.size() ? compiling : waits;
}

}  // namespace

const std::vector<int>& awaited_by(const RankLine& line) {
  return line.waits_for.empty() ? line.gave_up_on : line.waits_for;
}

// This compares texts, because c10d passes on no exception type by which gloo or NCCL tells a lost connection.
bool failed_by_others(const RankLine& line) {
  constexpr std::string_view kOfConnections[] = {"Timed out waiting ",        "gloo/transport/",
                                                 "Connection closed by peer", "Connection reset by peer",
                                                 "ncclRemoteError",           "Broken pipe"};
  return !awaited_by(line).empty() || !line.lost.empty() ||
         std::any_of(std::begin(kOfConnections), std::end(kOfConnections),
                     [&](std::string_view text) { return line.doing.find(text) != std::string::npos; });
}

std::vector<AwaitedRanks> waits_of(const std::vector<RankLine>& lines) {
  std::vector<AwaitedRanks> waits;
  for (const auto& line : lines) {
    const auto& ranks = awaited_by(line);
    if (!ranks.empty()) waits.push_back({line.rank, call_in(line.doing), ranks, line.at, line.where});
  }
  return waits;
}

std::vector<int> late_ranks(const std::vector<AwaitedRanks>& waits) {
  std::map<std::pair<std::string_view, int>, VirtualTime> first_waits;  // of others for a rank in a call
  for (const auto& wait : waits) {
    for (const int awaited : wait.waits_for) {
      if (awaited == wait.rank) continue;
      const auto [first, is_first] = first_waits.try_emplace({wait.call, awaited}, wait.at);
      if (!is_first) first->second = std::min(first->second, wait.at);
    }
  }
  std::set<int> late;
  for (const auto& wait : waits) {
    const auto first = first_waits.find({wait.call, wait.rank});
    if (first != first_waits.end() && first->second < wait.at) late.insert(wait.rank);
  }
  return sorted(late);
}

bool is_found_by_checker(const Report& report) {
  return !report.findings.empty() || !ranks_of(report, Cause::Kind::found_at_fault).empty();
}

std::vector<int> culprits_of(const Report& report) {
  if (report.dumps) return report.dumps->culprits;  // without ranks that may or may not have come to the call
  switch (report.verdict) {
    case Verdict::mismatch:
      if (!report.differences.empty()) return of_difference(report.differences.front());
      return of_waits(report);
    case Verdict::check_failed:
      if (!report.findings.empty()) return report.findings.front().ranks;
      return of_check(report);
    case Verdict::rank_failed: {
      auto ended = ranks_of(report, Cause::Kind::ended_without);
      return ended.empty() ? of_failures(report) : ended;
    }
    case Verdict::fault_not_fired:
    case Verdict::out_of_memory:
    case Verdict::crashed:
      return of_failures(report);
    default:
      if (!is_of_waits(report.verdict)) return {};
      if (auto delayed = ranks_of(report, Cause::Kind::held_up); !delayed.empty()) return delayed;
      if (auto slow = of_slow_transfer(report); !slow.empty()) return slow;
      if (!report.differences.empty()) return of_difference(report.differences.front());
      return of_standstill(report);
  }
}

}  // namespace rehearse::sim
