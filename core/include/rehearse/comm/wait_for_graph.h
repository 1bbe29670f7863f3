// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::comm {

// A rank that cannot go on: what it is in, and the ranks without which that cannot end. A rank may stand here more
// than once (its threads).
struct BlockedCall {
  int rank = -1;
  std::string call;            // `allreduce #3 on group "a"`
  std::vector<int> waits_for;  // empty: unknown
};

// `from` waits for `to` in `call`.
struct WaitEdge {
  int from = -1;
  int to = -1;
  std::string call;
};

// Why nobody can go on.
struct WaitAnalysis {
  // Ranks that wait for each other in a ring, across groups, point-to-point operations and stores: edge k's `to` is
  // edge k+1's `from`, and the last leads back to the first. Shortest first, each rank in at most one cycle.
  std::vector<std::vector<WaitEdge>> cycles;

  // Waits for ranks that have ended: no cycle, but no end either.
  std::vector<WaitEdge> on_ended;

  // The ranks that all others come down to: those in cycles, and those that have ended while others wait for them.
  std::vector<int> culprits;
};

// `ended`: ranks whose body is over (returned or failed). Cost: linear in the edges for each cycle that is found.
WaitAnalysis analyse_waits(const std::vector<BlockedCall>& blocked, const std::vector<int>& ended);

// `rank 0 waits for rank 1 (allreduce #3 on group "a")`.
std::string to_string(const WaitEdge& edge);

// The edges, joined by " -> ".
std::string to_string(const std::vector<WaitEdge>& cycle);

}  // namespace rehearse::comm
