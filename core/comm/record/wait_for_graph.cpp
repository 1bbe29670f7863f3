// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/wait_for_graph.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace rehearse::comm {
namespace {

// Edges by waiting rank. If a rank waits twice for the same rank, the first call counts.
using Graph = std::map<int, std::map<int, const BlockedCall*>>;

WaitEdge edge_of(const BlockedCall& call, int to) {
  return {call.rank, to, call.call, call.where, false, call.kind, call.object};
}

// The shortest ring through `start`; empty if there is none. Searches breadth first, so the first way back is the
// shortest.
std::vector<WaitEdge> cycle_through(const Graph& graph, int start, std::uint64_t& edges_followed) {
  std::map<int, int> reached_from;
  std::vector<int> front{start};
  while (!front.empty()) {
    std::vector<int> next;
    for (const int rank : front) {
      const auto edges = graph.find(rank);
      if (edges == graph.end()) continue;
      for (const auto& [to, call] : edges->second) {
        ++edges_followed;
        if (to == start) {
          std::vector<WaitEdge> cycle{edge_of(*call, start)};
          for (int at = rank; at != start; at = reached_from.at(at)) {
            const int from = reached_from.at(at);
            cycle.push_back(edge_of(*graph.at(from).at(at), at));
          }
          std::ranges::reverse(cycle);
          return cycle;
        }
        if (reached_from.try_emplace(to, rank).second) next.push_back(to);
      }
    }
    front = std::move(next);
  }
  return {};
}

bool waits_for_its_own(const BlockedCall& call) {
  return std::ranges::find(call.waits_for, call.rank) != call.waits_for.end();
}

// Leaves out waits of a rank for itself (for another of its fibers) if another wait of the rank is known.
std::vector<BlockedCall> without_waits_within(const std::vector<BlockedCall>& blocked) {
  std::set<int> others_known;
  for (const auto& call : blocked) {
    if (!waits_for_its_own(call)) others_known.insert(call.rank);
  }
  std::vector<BlockedCall> calls;
  for (const auto& call : blocked) {
    if (!waits_for_its_own(call) || !others_known.contains(call.rank)) calls.push_back(call);
  }
  return calls;
}

// If a chain of waits neither closes a ring nor reaches an ended rank, its last rank waits for no known rank. That last
// rank tells most about the cause. The more ranks wait for it, the more likely it is the cause. If one of a rank's
// fibers waits for another rank, the chain goes on to that other rank.
std::vector<DeadEnd> find_dead_ends(const std::vector<BlockedCall>& blocked, const Graph& graph) {
  std::set<int> go_on;  // ranks that wait for other ranks
  for (const auto& call : blocked) {
    if (!call.waits_for.empty() && !waits_for_its_own(call)) go_on.insert(call.rank);
  }
  std::map<int, DeadEnd> ends;
  for (const auto& call : blocked) {
    if (go_on.contains(call.rank)) continue;
    const DeadEnd end{call.rank, call.call, call.where, call.any_rank, call.kind, {}};
    const auto [known, is_first] = ends.try_emplace(call.rank, end);
    // Prefer the wait for a store's key: the rank's other waits may be for the thread that waits for the key.
    if (!is_first && call.any_rank && !known->second.any_rank) known->second = end;
  }
  for (const auto& [from, edges] : graph) {
    for (const auto& [to, call] : edges) {
      if (const auto end = ends.find(to); end != ends.end()) end->second.held_up.push_back(edge_of(*call, to));
    }
  }
  std::vector<DeadEnd> sorted;
  for (auto& [rank, end] : ends) sorted.push_back(std::move(end));
  std::ranges::stable_sort(sorted,
                           [](const DeadEnd& a, const DeadEnd& b) { return a.held_up.size() > b.held_up.size(); });
  return sorted;
}

// A wait that any rank could end (for a store's key) has no edge to a particular rank. If every chain leads to such
// waits, no rank is left that could end one, so they block each other as in a cycle. The ring then has an edge from the
// rank of the first such wait to a rank that waits for that rank or, if nobody does, to the rank of the next such wait.
// If there is any other dead end (a computation, a lock), its rank might still set the key, so there is no ring.
std::vector<WaitEdge> ring_of_any(const std::vector<DeadEnd>& ends, std::size_t ranks) {
  const auto is_any = [](const DeadEnd& end) { return end.any_rank; };
  if (ends.empty() || !std::ranges::all_of(ends, is_any)) return {};
  const DeadEnd& first = ends.front();
  const auto to = [ranks](const DeadEnd& end, int rank) {
    return WaitEdge{end.rank, rank, end.call, end.where, ranks > 2, end.kind};
  };
  if (!first.held_up.empty()) return {to(first, first.held_up.front().from), first.held_up.front()};
  // All of these ranks wait for the same key, so none of them would set it.
  if (std::ranges::all_of(ends, [&](const auto& end) { return end.call == first.call; })) return {};
  if (ends.size() > 1) return {to(first, ends[1].rank), to(ends[1], first.rank)};
  return {};
}

void remove(Graph& graph, const std::vector<WaitEdge>& cycle) {
  for (const auto& edge : cycle) graph.erase(edge.from);
  for (auto& [rank, edges] : graph) {
    for (const auto& edge : cycle) edges.erase(edge.from);
  }
}

}  // namespace

WaitAnalysis analyse_waits(const std::vector<BlockedCall>& all, const std::vector<int>& ended) {
  const auto blocked = without_waits_within(all);
  WaitAnalysis analysis;
  const std::set<int> gone(ended.begin(), ended.end());
  Graph graph;
  for (const auto& call : blocked) {
    for (const int to : call.waits_for) {
      if (to == call.rank) continue;
      if (gone.contains(to)) {
        analysis.on_ended.push_back(edge_of(call, to));
      } else {
        graph[call.rank].try_emplace(to, &call);
      }
    }
  }
  analysis.dead_ends = find_dead_ends(blocked, graph);
  // Takes the shortest cycle first: it is the easiest to understand, and longer cycles often go through the same ranks.
  // Then removes its ranks, so that each rank is in at most one cycle.
  for (;;) {
    std::vector<WaitEdge> shortest;
    for (const auto& [rank, edges] : graph) {
      auto cycle = cycle_through(graph, rank, analysis.edges_followed);
      if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size())) shortest = std::move(cycle);
      // No cycle has fewer than two edges. Do not search on, because large groups that wait for each other have very
      // many cycles.
      if (shortest.size() == 2) break;
    }
    if (shortest.empty()) break;
    remove(graph, shortest);
    analysis.cycles.push_back(std::move(shortest));
  }
  // A cycle or an ended rank surely explains the standstill. Guess about keys only if there is neither.
  if (analysis.cycles.empty() && analysis.on_ended.empty()) {
    std::set<int> ranks;
    for (const auto& call : blocked) ranks.insert(call.rank);
    analysis.ring_of_any = ring_of_any(analysis.dead_ends, ranks.size());
  }
  return analysis;
}

std::string to_string(const WaitEdge& edge) {
  const auto where = edge.where.at();
  if (!edge.or_any) return fmt::format("rank {} waits for rank {} ({}){}", edge.from, edge.to, edge.call, where);
  return fmt::format(
      "rank {} waits in {}{}; any other rank could end this wait, but rank {}, for example, is blocked, too", edge.from,
      edge.call, where, edge.to);
}

}  // namespace rehearse::comm
