// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::comm {

// A rank that cannot go on: what it is in, and the ranks without which that cannot end. A rank may stand here more
// than once (its threads).
struct BlockedCall {
  int rank = -1;
  std::string call;            // `allreduce #3 on group "a"`
  std::vector<int> waits_for;  // empty: unknown
  std::string where{};         // the call's place, for the reader; empty: unknown
  bool any_rank = false;       // any other rank could end it (a store's key); waits_for is empty
};

// `from` waits for `to` in `call`.
struct WaitEdge {
  int from = -1;
  int to = -1;
  std::string call;
  std::string where{};  // of the call
  bool or_any = false;  // another rank than `to` would do as well
};

// A rank that waits for no other rank that we know of (but for a key, a condition, a computation, a lock of its own),
// and those that wait for it.
struct DeadEnd {
  int rank = -1;
  std::string call, where{};      // of several fibers the first; before others one that any rank could end
  bool any_rank = false;          // as in BlockedCall
  std::vector<WaitEdge> held_up;  // one for each rank that waits for this one
};

// Why nobody can go on.
struct WaitAnalysis {
  // Ranks that wait for each other in a ring, across groups, point-to-point operations and stores: edge k's `to` is
  // edge k+1's `from`, and the last leads back to the first. Shortest first, each rank in at most one cycle.
  std::vector<std::vector<WaitEdge>> cycles;

  // Waits for ranks that have ended: no cycle, but no end either.
  std::vector<WaitEdge> on_ended;

  // Where other chains of waits lead. Those for which the most ranks wait first, then by rank.
  std::vector<DeadEnd> dead_ends;

  // The ring through the first dead end, where any other rank could end its wait and all that are left wait for it, or
  // for others like it. Empty otherwise.
  std::vector<WaitEdge> ring_of_any;

  // What finding the cycles cost: how often an edge was followed.
  std::uint64_t edges_followed = 0;
};

// `ended`: ranks whose body is over (returned or failed). A fiber that waits for its own rank (a thread, or a lock) is
// in no cycle: the wait of the rank's other fibers counts, where one is known. Cost: for each cycle that is found, the
// edges once for each rank; where two ranks wait for each other, the search for that cycle ends there.
WaitAnalysis analyse_waits(const std::vector<BlockedCall>& blocked, const std::vector<int>& ended);

// `rank 0 waits for rank 1 (allreduce #3 on group "a")`, `... for rank 1 or any other (store wait for key "k")`.
std::string to_string(const WaitEdge& edge);

}  // namespace rehearse::comm
