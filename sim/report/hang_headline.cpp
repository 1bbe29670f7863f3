// SPDX-License-Identifier: BSD-3-Clause
#include "report/hang_headline.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/exec/rank_list.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kCausesShown = 2;  // dead ends that differ; the ranks' lines have all
constexpr std::size_t kCallsShown = 2;   // of ranks that wait
constexpr std::size_t kRingShown = 8;    // ranks; all edges stand below
constexpr std::size_t kEdgesShown = 3;

using comm::WaitEdge;

std::string gone(const std::vector<WaitEdge>& on_ended) {
  const std::string& call = on_ended.front().call;
  std::set<int> missing;
  for (const WaitEdge& edge : on_ended) {
    if (edge.call == call) missing.insert(edge.to);
  }
  const std::vector<int> ranks(missing.begin(), missing.end());
  return fmt::format("{}: {} {} ended and will never come", call, describe_ranks(ranks),
                     ranks.size() == 1 ? "has" : "have");
}

// "; ranks 0-1 wait for it in barrier #2", or nothing.
std::string held_up(std::vector<WaitEdge> edges) {
  if (edges.empty()) return "";
  std::vector<int> ranks;
  std::vector<std::string> calls;
  for (const WaitEdge& edge : edges) {
    ranks.push_back(edge.from);
    if (std::find(calls.begin(), calls.end(), edge.call) == calls.end()) calls.push_back(edge.call);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (calls.size() > kCallsShown) {
    calls.resize(kCallsShown);
    calls.emplace_back("others");
  }
  return fmt::format("; {} wait{} for it in {}", describe_ranks(ranks), ranks.size() == 1 ? "s" : "",
                     fmt::join(calls, " and "));
}

std::string ring(const std::vector<WaitEdge>& cycle) {
  if (cycle.size() == 1) return fmt::format("rank {} waits for itself in {}", cycle.front().from, cycle.front().call);
  std::vector<std::string> ranks, calls;
  for (const WaitEdge& edge : cycle) {
    if (ranks.size() < kRingShown) ranks.push_back(std::to_string(edge.from));
    if (calls.size() < kEdgesShown) calls.push_back(fmt::format("rank {} in {}", edge.from, edge.call));
  }
  if (ranks.size() < cycle.size()) ranks.emplace_back("...");
  if (calls.size() < cycle.size()) calls.emplace_back("...");
  return fmt::format("ranks {} -> {} wait for each other: {}", fmt::join(ranks, " -> "), cycle.front().from,
                     fmt::join(calls, ", "));
}

// Ranks that stand in the same place for the same reason are one cause.
struct Cause {
  std::vector<int> ranks;
  std::string what;
  std::vector<WaitEdge> held_up;
};

std::vector<Cause> causes_of(const std::vector<comm::DeadEnd>& ends, const std::vector<RankLine>& lines) {
  std::vector<Cause> causes;
  for (const auto& end : ends) {
    const std::string& where = lines[static_cast<std::size_t>(end.rank)].where;
    const auto what = where.empty() ? end.call : end.call + " at " + where;
    auto cause = std::find_if(causes.begin(), causes.end(), [&](const Cause& other) { return other.what == what; });
    if (cause == causes.end()) cause = causes.insert(cause, {{}, what, {}});
    cause->ranks.push_back(end.rank);
    cause->held_up.insert(cause->held_up.end(), end.held_up.begin(), end.held_up.end());
  }
  return causes;
}

std::vector<std::string> dead_ends(const std::vector<comm::DeadEnd>& ends, const std::vector<RankLine>& lines) {
  std::vector<std::string> texts;
  auto causes = causes_of(ends, lines);
  for (Cause& cause : causes) {
    std::sort(cause.ranks.begin(), cause.ranks.end());
    texts.push_back(fmt::format("{} wait{} for ever in {}{}", describe_ranks(cause.ranks),
                                cause.ranks.size() == 1 ? "s" : "", cause.what,
                                texts.empty() ? held_up(cause.held_up) : ""));
    if (texts.size() == kCausesShown) break;
  }
  if (texts.size() < causes.size()) texts.push_back(fmt::format("and {} more", causes.size() - texts.size()));
  return texts;
}

}  // namespace

std::string hang_headline(const comm::WaitAnalysis& analysis, const std::vector<RankLine>& lines) {
  std::vector<std::string> causes;
  if (!analysis.on_ended.empty()) causes.push_back(gone(analysis.on_ended));
  if (!analysis.cycles.empty()) causes.push_back(ring(analysis.cycles.front()));
  // A wait that holds nobody up is what led here only when nothing else is.
  std::vector<comm::DeadEnd> ends = analysis.dead_ends;
  const bool in_the_way = !causes.empty() || (!ends.empty() && !ends.front().held_up.empty());
  if (in_the_way) std::erase_if(ends, [](const comm::DeadEnd& end) { return end.held_up.empty(); });
  for (auto& text : dead_ends(ends, lines)) causes.push_back(std::move(text));
  return fmt::format("{}", fmt::join(causes, "; "));
}

}  // namespace rehearse::sim
