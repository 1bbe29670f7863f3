// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/culprits.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

namespace rehearse::sim {
namespace {

constexpr std::string_view kMissing = "missing ranks: ";

// "0-1,3", as rank_numbers() writes them.
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  const auto number = [&text]() -> int {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? value : -1;
  };
  for (int first = number(); first >= 0; first = number()) {
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = number();
    }
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return ranks;
}

// Reads "rank 3: ..." and "ranks 0 and 1 use ...", with which headlines of checkers without findings begin.
std::vector<int> ranks_named_first(std::string_view headline) {
  constexpr std::string_view kOne = "rank ", kTwo = "ranks ", kAnd = " and ";
  if (headline.starts_with(kOne)) return ranks_in(headline.substr(kOne.size()));
  const auto second = headline.find(kAnd);
  if (!headline.starts_with(kTwo) || second == std::string_view::npos) return {};
  auto ranks = ranks_in(headline.substr(kTwo.size()));
  for (const int rank : ranks_in(headline.substr(second + kAnd.size()))) ranks.push_back(rank);
  return ranks;
}

// Without what a wait or an error says behind it.
std::string call_in(const std::string& doing) {
  constexpr std::string_view kGroup = " on group \"";
  if (const auto group = doing.find(kGroup); group != std::string::npos) {
    const auto end = doing.find('"', group + kGroup.size());
    if (end != std::string::npos) return doing.substr(0, end + 1);
  }
  return doing.substr(0, std::min(doing.find(": "), doing.find(" (")));
}

std::vector<int> sorted(std::set<int> ranks) { return {ranks.begin(), ranks.end()}; }

std::vector<int> of_difference(const Difference& difference) {
  std::set<int> minority(difference.second.ranks.begin(), difference.second.ranks.end());
  for (const auto& side : difference.others) minority.insert(side.ranks.begin(), side.ranks.end());
  if (difference.first.ranks.size() <= minority.size())
    minority.insert(difference.first.ranks.begin(), difference.first.ranks.end());
  return sorted(std::move(minority));
}

std::vector<int> of_failures(const Report& report) {
  std::set<int> failed, of_their_own;
  for (const auto& line : report.rank_lines) {
    if (line.state != RankOutcome::failed) continue;
    failed.insert(line.rank);
    if (!failed_by_others(line)) of_their_own.insert(line.rank);
  }
  return sorted(of_their_own.empty() ? std::move(failed) : std::move(of_their_own));
}

std::vector<int> of_check(const Report& report) {
  auto failed = of_failures(report);
  return failed.empty() ? ranks_named_first(report.headline) : failed;
}

std::vector<int> of_waits(const std::vector<AwaitedRanks>& waits) {
  std::map<int, std::set<int>> edges;
  for (const auto& wait : waits) edges[wait.rank].insert(wait.waits_for.begin(), wait.waits_for.end());
  for (const int late : late_ranks(waits)) edges.erase(late);
  std::set<int> ends, ring;
  for (const auto& [rank, awaited] : edges) {
    for (const int other : awaited) (edges.contains(other) ? ring : ends).insert(other);
  }
  return sorted(ends.empty() ? std::move(ring) : std::move(ends));
}

}  // namespace

// Neither gloo nor NCCL has a type for it that comes through c10d.
bool failed_by_others(const RankLine& line) {
  constexpr std::string_view kOfConnections[] = {"Timed out waiting ",        "gloo/transport/",
                                                 "Connection closed by peer", "Connection reset by peer",
                                                 "ncclRemoteError",           "Broken pipe"};
  return !waits_of({line}).empty() ||
         std::any_of(std::begin(kOfConnections), std::end(kOfConnections),
                     [&](std::string_view text) { return line.doing.find(text) != std::string::npos; });
}

std::vector<AwaitedRanks> waits_of(const std::vector<RankLine>& lines) {
  std::vector<AwaitedRanks> waits;
  for (const auto& line : lines) {
    auto ranks = line.waits_for;
    if (const auto missing = line.doing.find(kMissing); ranks.empty() && missing != std::string::npos)
      ranks = ranks_in(std::string_view(line.doing).substr(missing + kMissing.size()));
    if (!ranks.empty()) waits.push_back({line.rank, call_in(line.doing), std::move(ranks), line.at, line.where});
  }
  return waits;
}

std::vector<int> late_ranks(const std::vector<AwaitedRanks>& waits) {
  std::set<int> late;
  for (const auto& one : waits) {
    for (const auto& earlier : waits) {
      const auto& awaited = earlier.waits_for;
      const bool same_call = earlier.rank != one.rank && earlier.call == one.call && earlier.at < one.at;
      if (same_call && std::find(awaited.begin(), awaited.end(), one.rank) != awaited.end()) late.insert(one.rank);
    }
  }
  return sorted(std::move(late));
}

std::vector<int> culprits_of(const Report& report) {
  if (report.dumps) return report.dumps->culprits;  // where nobody knows whether a rank came, it is none
  switch (report.verdict) {
    case Verdict::mismatch:
      if (!report.differences.empty()) return of_difference(report.differences.front());
      return of_waits(waits_of(report.rank_lines));
    case Verdict::check_failed:
      if (!report.findings.empty()) return report.findings.front().ranks;
      return of_check(report);
    case Verdict::rank_failed:
    case Verdict::fault_not_fired:
    case Verdict::out_of_memory:
    case Verdict::crashed:
      return of_failures(report);
    case Verdict::deadlock:
    case Verdict::timeout:
    case Verdict::livelock:
      if (!report.differences.empty()) return of_difference(report.differences.front());
      return of_waits(waits_of(report.rank_lines));
    default:
      return {};
  }
}

}  // namespace rehearse::sim
